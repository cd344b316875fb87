"""cluster.yaml: Ray accepts it, a mocked AWS makes of it what it promises, and no door stands open."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def declared() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "cluster.yaml").read_text())


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An AWS that exists in this process alone, and a home for the key that Ray creates. Yields EC2's client."""
    import boto3
    from moto import mock_aws

    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # Ray waits 30 s for a new role to be known
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        yield boto3.client("ec2", region_name="us-west-2")


@pytest.fixture
def resolved(aws: Any, declared: dict[str, Any]) -> dict[str, Any]:
    """What `ray up` makes of the file before it starts a machine."""
    from ray.autoscaler._private.commands import _bootstrap_config

    return _bootstrap_config(declared, no_config_cache=True)


def test_ray_accepts_the_file(declared: dict[str, Any]) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(declared))
    assert "RAY_enable_autoscaler_v2=0" in declared["head_start_ray_commands"][1]


def test_machines_on_a_mocked_aws(aws: Any, resolved: dict[str, Any]) -> None:
    """A head on demand and a worker on the spot market, tagged, with the room that AWS names for their types."""
    from ray.autoscaler._private.aws.node_provider import AWSNodeProvider

    provider = AWSNodeProvider(resolved["provider"], resolved["cluster_name"])
    kinds = resolved["available_node_types"]
    assert kinds["gpu"]["resources"]["CPU"] == 4
    assert kinds["gpu"]["resources"]["GPU"] == 1
    image = aws.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]  # the file's is for a person to name
    for kind in ("head", "gpu"):
        config = {**kinds[kind]["node_config"], "ImageId": image}
        provider.create_node(config, {"ray-node-type": kind}, 1)
    machines = [one for group in aws.describe_instances()["Reservations"] for one in group["Instances"]]
    by_kind = {tags_of(machine)["ray-node-type"]: machine for machine in machines}
    assert [tags_of(machine)["project"] for machine in machines] == ["semray", "semray"]
    assert "InstanceLifecycle" not in by_kind["head"]
    assert by_kind["gpu"]["InstanceLifecycle"] == "spot"
    assert by_kind["gpu"]["InstanceType"] == "g5.xlarge"


def test_only_ssh_comes_in_from_outside(aws: Any, resolved: dict[str, Any]) -> None:
    """By the rules of the security group that Ray creates, nothing but port 22 is open to addresses."""
    ids = {
        i for kind in resolved["available_node_types"].values() for i in kind["node_config"]["SecurityGroupIds"]
    }
    (group,) = aws.describe_security_groups(GroupIds=sorted(ids))["SecurityGroups"]
    outside = [rule for rule in group["IpPermissions"] if rule.get("IpRanges") or rule.get("Ipv6Ranges")]
    assert [(rule["FromPort"], rule["ToPort"]) for rule in outside] == [(22, 22)]
    inside = [rule for rule in group["IpPermissions"] if rule not in outside]
    assert [pair["GroupId"] for rule in inside for pair in rule["UserIdGroupPairs"]] == sorted(ids)


def test_doors_of_the_commands(declared: dict[str, Any]) -> None:
    """Dashboard and MLflow on loopback, the token asked for on every node, private, and never in the file itself."""
    starts = [*declared["head_start_ray_commands"], *declared["worker_start_ray_commands"]]
    rays = [command for command in starts if "ray start" in command]
    assert len(rays) == 2
    assert all(command.startswith("RAY_AUTH_MODE=token ") for command in rays)
    hosts = {host for command in starts for host in re.findall(r"host[= ]([\w.]+)", command)}
    assert hosts == {"127.0.0.1"}
    assert declared["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    assert any("chmod 600 ~/.ray/auth_token" in command for command in declared["setup_commands"])


def test_every_file_that_travels_exists(declared: dict[str, Any]) -> None:
    ours = [path for path in declared["file_mounts"].values() if not path.startswith("~")]
    assert ours
    assert all((ROOT / path).is_file() for path in ours)


def tags_of(machine: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in machine["Tags"]}
