"""The task that waits for a group: it sets up Ray Train for one run, with workers that reach one another."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from orchestration.lanes.groups.worker import GroupKind, train
from orchestration.lanes.lane import variables_of
from orchestration.study.run import Run

FASTER = {  # Ray Train answers at its poll, and starts services that nobody reads
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_TRAIN_ENABLE_CONTROLLER_STRUCTURED_LOGGING": "0",
    "RAY_TRAIN_ENABLE_WORKER_STRUCTURED_LOGGING": "0",
    "RAY_TRAIN_ENABLE_STATE_ACTOR_RECONCILIATION": "0",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a process that tells workers of a node's end, who do not ask
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # paths in a study are relative to where it was started
}
IDLE = ("DatasetsCallback", "PlacementGroupCleanerCallback")


class Door(NamedTuple):
    """Where rank 0 of a group listens. listener: the descriptor of its socket, in that process."""

    address: str
    port: int
    listener: int


def fit(kind: GroupKind, run: Run, before: int, board: Any) -> None:
    """One Ray Train run. Its name is the run's id, so that it goes on where an earlier driver left it."""
    import ray
    import ray.train

    give_back(board, run.id)  # of a start that died with this task's process
    os.environ.update(FASTER)
    api: Any = ray.train  # its types are those of the first Ray Train
    wanted = {"CPU": kind.threads, "GPU": kind.gpus, "memory": kind.memory}
    share = {name: amount for name, amount in wanted.items() if amount}
    trainer()(
        train,
        train_loop_config={"kind": kind, "run": run, "before": before, "board": board},
        scaling_config=api.ScalingConfig(
            num_workers=run.world_size, use_gpu=bool(kind.gpus), resources_per_worker=share
        ),
        torch_config=_on_node_addresses(),
        run_config=api.RunConfig(
            name=run.id,
            storage_path=f"{kind.url}/.train",
            failure_config=api.FailureConfig(max_failures=kind.retries),
            checkpoint_config=api.CheckpointConfig(num_to_keep=1),
            worker_runtime_env={"env_vars": variables_of(kind.threads, kind.gpus)},
        ),
    ).fit()


def give_back(board: Any, run_id: str) -> None:
    """Free what a run's group was given: whose controller dies without a word, for that Ray would keep it.

    A group that ended well has given it back itself.
    """
    import ray

    with suppress(ray.exceptions.RayError):  # a board that died comes again, and knows nothing
        placement = ray.get(board.placement.remote(run_id))
        if placement is not None:
            ray.util.remove_placement_group(placement)


def trainer() -> Any:
    """Ray Train without two processes of each group that have nothing to do here.

    One would share out Ray data sets, of which there are none. The other does what `give_back` does, by Ray's
    dashboard; where there is none, as on one machine, it does nothing, and every group waits ten seconds for it.
    """
    from ray.train.torch import TorchTrainer

    usual: Any = TorchTrainer

    class _Trainer(usual):
        def _create_default_callbacks(self) -> list[Any]:
            every = super()._create_default_callbacks()
            return [one for one in every if type(one).__name__ not in IDLE]

    return _Trainer


def _on_node_addresses() -> Any:
    """A process group whose workers listen where Ray reaches their nodes, and nowhere else.

    gloo would listen on the address of the host's own name, which on many machines is a loopback one: workers of
    one node would meet there, those of two never. The store by which they meet would listen on every address of
    rank 0's machine, and whoever reaches it may write there.
    """
    from ray.train.torch import TorchConfig
    from ray.train.torch.config import _TorchBackend

    class Backend(_TorchBackend):
        def on_start(self, worker_group: Any, backend_config: Any) -> None:
            worker_group.execute(_listen_on_node_address)
            door = worker_group.execute_single(0, _opened_door)
            worker_group.execute(_meet, door, timedelta(seconds=backend_config.timeout_s))

    class Config(TorchConfig):
        @property
        def backend_cls(self) -> type[Backend]:
            return Backend

    return Config()


def _listen_on_node_address() -> None:
    """Name the interface that has the node's address to gloo; where none has it, gloo finds its own way."""
    import ray

    if interface := _interface_of(ray.util.get_node_ip_address()):
        os.environ["GLOO_SOCKET_IFNAME"] = interface


def _interface_of(address: str) -> str | None:
    """None where others know this node by an address that no interface of it has, as behind a router."""
    import psutil

    given = psutil.net_if_addrs().items()
    return next((name for name, own in given if any(one.address == address for one in own)), None)


def _opened_door() -> Door:
    """A free port at this node's address, or at all of its own where that is none of them."""
    import ray

    address = ray.util.get_node_ip_address()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address if _interface_of(address) else "", 0), family=family)
    return Door(address, listener.getsockname()[1], listener.detach())


def _meet(door: Door, patience: timedelta) -> None:
    """Join the group's workers, by a store behind rank 0's door."""
    import torch.distributed as dist
    from ray.train import get_context
    from ray.train.torch import get_device
    from ray.train.torch.config import _set_torch_distributed_env_vars

    _set_torch_distributed_env_vars()
    os.environ |= {"MASTER_ADDR": door.address, "MASTER_PORT": str(door.port)}
    rank, size = get_context().get_world_rank(), get_context().get_world_size()
    listener = door.listener if rank == 0 else None
    store = dist.TCPStore(door.address, door.port, size, rank == 0, patience, master_listen_fd=listener)
    backend = "nccl" if get_device().type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=patience)
