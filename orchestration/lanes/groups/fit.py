"""The Ray task of a worker group: sets up Ray Train for one run, with workers that reach one another."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from orchestration.lanes.groups.worker import GroupKind, train
from orchestration.lanes.lane import variables_of
from orchestration.study.run import Run

FASTER = {  # poll more often, and start none of the services that are not used here
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_TRAIN_ENABLE_CONTROLLER_STRUCTURED_LOGGING": "0",
    "RAY_TRAIN_ENABLE_WORKER_STRUCTURED_LOGGING": "0",
    "RAY_TRAIN_ENABLE_STATE_ACTOR_RECONCILIATION": "0",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # its warnings of a node's end are not used here
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # paths in a study are relative to where it was started
}
IDLE = ("DatasetsCallback", "PlacementGroupCleanerCallback")
# How long a worker waits for another, as the longest `resources.stall_minutes`: rank 0 may score for hours while
# the others wait, and a group that makes no progress is ended by the driver
PATIENCE = timedelta(weeks=1)


class Door(NamedTuple):
    """Where rank 0 of a group listens. listener: the file descriptor of its socket, valid in rank 0's process."""

    address: str
    port: int
    listener: int


def fit(kind: GroupKind, run: Run, before: int, board: Any) -> None:
    """Execute a run with Ray Train, under the run's id, so that it continues where an earlier driver left it."""
    import ray
    import ray.train

    give_back(board, run.id)  # resources of an earlier start whose process died
    os.environ.update(FASTER)
    api: Any = ray.train  # its type hints are those of Ray Train's first version
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
    """Free the resources reserved for a run's group: Ray keeps them if the group's controller is killed.

    A group that ended well has freed them itself.
    """
    import ray

    with suppress(ray.exceptions.RayError):  # a board that died is restarted empty
        placement = ray.get(board.placement.remote(run_id))
        if placement is not None:
            ray.util.remove_placement_group(placement)


def trainer() -> Any:
    """Ray Train's TorchTrainer without two helper processes per group that are not needed here.

    One distributes Ray data sets, which are not used. The other does what `give_back` does, through Ray's
    dashboard; without a dashboard, as on one machine, it does nothing, and every group would wait ten seconds for
    it.
    """
    from ray.train.torch import TorchTrainer

    usual: Any = TorchTrainer

    class _Trainer(usual):
        def _create_default_callbacks(self) -> list[Any]:
            callbacks = super()._create_default_callbacks()
            return [callback for callback in callbacks if type(callback).__name__ not in IDLE]

    return _Trainer


def _on_node_addresses() -> Any:
    """A TorchConfig whose process group listens only on the addresses by which Ray reaches the nodes.

    By default gloo listens on the address of the host's name, often a loopback address, at which workers of two
    nodes cannot meet. And torch's store would listen on every address of rank 0's machine, where anyone who
    reaches it may write.
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
    """Tell gloo the interface with the node's address; if none has it, gloo chooses one itself."""
    import ray

    if interface := _interface_of(ray.util.get_node_ip_address()):
        os.environ["GLOO_SOCKET_IFNAME"] = interface


def _interface_of(address: str) -> str | None:
    """The network interface with this address; None if no interface has it, as behind a router."""
    import psutil

    interfaces = psutil.net_if_addrs().items()
    return next((name for name, entries in interfaces if any(each.address == address for each in entries)), None)


def _opened_door() -> Door:
    """Listen on a free port at this node's address, or at all addresses if no interface has it."""
    import ray

    address = ray.util.get_node_ip_address()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address if _interface_of(address) else "", 0), family=family)
    return Door(address, listener.getsockname()[1], listener.detach())


def _meet(door: Door, until: timedelta) -> None:
    """Join the process group, through a store that listens at rank 0's door; all have to come within `until`."""
    import torch.distributed as dist
    from ray.train import get_context
    from ray.train.torch import get_device
    from ray.train.torch.config import _set_torch_distributed_env_vars

    _set_torch_distributed_env_vars()
    os.environ |= {"MASTER_ADDR": door.address, "MASTER_PORT": str(door.port)}
    rank, size = get_context().get_world_rank(), get_context().get_world_size()
    listener = door.listener if rank == 0 else None
    store = dist.TCPStore(door.address, door.port, size, rank == 0, until, master_listen_fd=listener)
    backend = "nccl" if get_device().type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
