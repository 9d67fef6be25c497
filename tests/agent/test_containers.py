"""A grant's shares become limits without loss, or an error."""

from pathlib import Path

import pytest

from lamina.agent.containers.paths import write_limits
from lamina.core.grants import ComputePolicy, ContainerGrant, Share
from lamina.enforcement import read_limits, read_usage
from lamina.errors import BadInput
from tests.agent.node import GPU

SHARES = (
    Share(gpu=GPU[0], memory_mib=5120, cores=30, compute_policy=ComputePolicy.CAP),
    Share(gpu=GPU[2], memory_mib=1),
)


def test_the_limits_are_the_grants(tmp_path: Path) -> None:
    write_limits(tmp_path, ContainerGrant(name="main", shares=SHARES, priority=0, log_level=3), SHARES)
    limits = read_limits(tmp_path / "limits")
    assert [(d.uuid, d.memory_bytes, d.cores_percent, d.compute_policy) for d in limits.devices] == [
        (GPU[0], 5120 * 1024 * 1024, 30, ComputePolicy.CAP),
        (GPU[2], 1024 * 1024, 0, ComputePolicy.NONE),
    ]
    assert (limits.priority, limits.log_level) == (0, 3)
    usage = read_usage(tmp_path / "usage")
    assert [device.uuid for device in usage.devices] == [GPU[0], GPU[2]]
    assert usage.processes == ()


def test_no_priority_is_the_lower_one(tmp_path: Path) -> None:
    write_limits(tmp_path, ContainerGrant(name="main", shares=SHARES), SHARES)
    assert read_limits(tmp_path / "limits").priority == 1


@pytest.mark.parametrize(
    "share",
    [
        Share(gpu=GPU[0], memory_mib=0),
        Share(gpu=GPU[0], memory_mib=1, cores=0, compute_policy=ComputePolicy.CAP),
        Share(gpu=GPU[0], memory_mib=1, cores=101, compute_policy=ComputePolicy.WEIGHT),
        Share(gpu="0", memory_mib=1),
    ],
)
def test_limits_that_cannot_be_enforced_are_refused(tmp_path: Path, share: Share) -> None:
    with pytest.raises(BadInput):
        write_limits(tmp_path, ContainerGrant(name="main", shares=(share,)), (share,))
    assert list(tmp_path.iterdir()) == []
