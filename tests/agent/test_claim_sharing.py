"""How containers share the devices of a claim by its parameters: MPS daemons of requests, and the length of turns."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.mps.lifecycle import PAUSES_S, end_daemons
from lamina.core.sharing import TimeSlice
from lamina.dra.names import cdi_name
from lamina.errors import BadInput, LaminaError, NotYet, Outside
from lamina.ports.files import Files
from lamina.ports.kube import EVENTS
from lamina.ports.nvml import GpuProcess
from tests.agent.claim_nodes import ClaimNode, dies, result, sharing
from tests.agent.node import GPU

WHOLE, SHARE = result(), result(memory="4Gi", cores=30)


@pytest.fixture
def node(tmp_path: Path) -> ClaimNode:
    return ClaimNode(tmp_path)


LIMITS: dict[str, Any] = {"defaultActiveThreadPercentage": 50, "defaultPinnedDeviceMemoryLimit": "10Gi"}


async def by_mps(node: ClaimNode, name: str, *results: Any, prepare: bool = True, **config: Any) -> None:
    await node.claim(name, *results, config=[sharing("MPS", **config)])
    if prepare:
        await node.prepare(name)


async def refused(node: ClaimNode, name: str, sentence: str, error: type[LaminaError] = BadInput) -> None:
    with pytest.raises(error, match=sentence):
        await node.prepare(name)


def edits(node: ClaimNode, claim: str, request: str = "gpu") -> tuple[list[str], list[str]]:
    spec = node.spec(cdi_name(f"uid-of-{claim}", request))
    assert spec is not None
    return spec["env"], [each["containerPath"] for each in spec["mounts"]]


async def test_a_whole_gpu_is_only_its_daemons(node: ClaimNode) -> None:
    await by_mps(node, "c", WHOLE, **LIMITS)
    assert node.mps.started == [GPU[0]] and node.nvml.exclusive == {GPU[0]}
    assert node.mps.daemons[GPU[0]].commands[:2] == [
        "set_default_device_pinned_mem_limit 0 10240M",
        "set_default_active_thread_percentage 50",
    ]
    variables, mounts = edits(node, "c")
    assert "CUDA_MPS_PIPE_DIRECTORY=/mps/gpu/pipe" in variables
    assert {"/mps/gpu/pipe", "/dev/shm"} <= set(mounts) and "/run/lamina/limits" not in mounts
    await node.unprepare("c")
    assert (node.mps.daemons, node.nvml.exclusive, node.left()) == ({}, set(), [])
    assert list((node.root / "mps" / "claims").iterdir()) == []


async def test_a_share_keeps_its_own_limits_next_to_those_of_clients(node: ClaimNode) -> None:
    """Its neighbors do not use MPS, so the GPU is not exclusive to the daemon."""
    await node.prepared("neighbor", result(memory="4Gi"))
    await by_mps(node, "c", SHARE, **LIMITS)
    assert node.nvml.exclusive == set()
    assert node.mps.daemons[GPU[0]].commands[0] == "set_default_device_pinned_mem_limit 0 4096M"
    assert node.limits_of("c") == "gpu:0:4096"
    assert {"/mps/gpu/pipe", "/run/lamina/limits"} <= set(edits(node, "c")[1])


async def test_without_limits_a_client_may_have_all_of_its_device(node: ClaimNode) -> None:
    await by_mps(node, "c", WHOLE)
    assert node.mps.daemons[GPU[0]].commands[:2] == [
        "set_default_device_pinned_mem_limit 0 32768M",
        "set_default_active_thread_percentage 100",
    ]


@pytest.mark.parametrize("key", ["0", GPU[0]])
async def test_the_limit_of_the_device_counts_more(node: ClaimNode, key: str) -> None:
    await by_mps(node, "c", WHOLE, **LIMITS, defaultPerDevicePinnedMemoryLimit={key: "1Gi"})
    assert node.mps.daemons[GPU[0]].memory == "1024M"


async def test_what_mps_cannot_do_is_refused(node: ClaimNode) -> None:
    await by_mps(node, "two", WHOLE, result(device="gpu-1"), prepare=False)
    await refused(node, "two", "by MPS a container has one device, and this request has gpu-0, gpu-1")
    await by_mps(node, "admin", result(adminAccess=True), prepare=False)
    await refused(node, "admin", "with adminAccess it cannot say how its devices are shared")
    await by_mps(node, "far", WHOLE, prepare=False, defaultPerDevicePinnedMemoryLimit={"1": "1Gi"})
    await refused(node, "far", "has 1, but the only device is 0, GPU-")
    await node.using_pod("p", {"name": "both"}, claims=("both",))
    mps = sharing("MPS", "a")
    await node.claim("both", result("a"), result("b", "gpu-1"), config=[mps], pods=["p"])
    await refused(node, "both", 'container "c0" of pod p uses the requests a, b, but one with MPS must be the only')
    assert (node.mps.started, node.left(), node.context.record.claims) == ([], [], {})


async def test_a_daemon_does_not_start_while_another_program_uses_the_gpu(node: ClaimNode) -> None:
    node.nvml.running[GPU[0]] = (GpuProcess(4711, None),)
    await by_mps(node, "c", WHOLE, prepare=False)
    await refused(node, "c", "is in use by process 4711; MPS for the claim waits", NotYet)
    await node.claim("other", WHOLE)
    await refused(node, "other", "has no room", NotYet)
    node.nvml.running.clear()
    await node.prepare("c")


async def test_without_a_daemon_nothing_starts(node: ClaimNode) -> None:
    node.mps.refuses = "the MPS service of this node does not listen"
    await by_mps(node, "c", WHOLE, prepare=False)
    await refused(node, "c", "the MPS service of this node does not listen", Outside)
    assert node.spec(cdi_name("uid-of-c", "gpu")) is None
    node.mps.refuses, node.mps.deaf = "", True
    await refused(node, "c", "did not accept 32768 MiB and 100 % for each client", Outside)
    await node.unprepare("c")
    assert (node.mps.daemons, node.nvml.exclusive, node.left()) == ({}, set(), [])


async def test_a_daemon_outlives_the_agent_and_is_started_again_when_it_has_ended(node: ClaimNode) -> None:
    await by_mps(node, "c", WHOLE, **LIMITS)
    before = node.disk()
    node.start()
    await node.daemons.reconcile()
    await node.prepare("c")
    assert node.mps.started == [GPU[0]] and node.disk() == before
    for pause in PAUSES_S[:2]:
        node.mps.daemons.clear()
        await node.daemons.reconcile()
        assert len(node.mps.daemons) == 1
        node.mps.daemons.clear()
        await node.daemons.reconcile()
        assert node.mps.daemons == {}, "it waits before it starts once more"
        await node.clock.advance(pause)
    reasons = {event["reason"] for event in (await node.kube.list(EVENTS)).items}
    assert reasons == {"MpsRestarted"}


async def test_a_daemon_of_an_unhealthy_gpu_is_not_started_again(node: ClaimNode) -> None:
    await by_mps(node, "c", WHOLE)
    node.mps.daemons.clear()
    node.observe(gpu0="the driver reported XID 79")
    await node.daemons.reconcile()
    assert node.mps.daemons == {}
    node.observe()
    await node.daemons.reconcile()
    assert len(node.mps.daemons) == 1


async def test_uninstalling_ends_the_daemons(node: ClaimNode) -> None:
    await by_mps(node, "c", WHOLE)
    assert await end_daemons(node.context.settings.mps, node.mps, node.nvml, Files(), node.clock) == []
    assert (node.mps.daemons, node.nvml.exclusive) == ({}, set())


async def test_a_whole_gpu_has_turns_of_the_length_of_its_claim(node: ClaimNode) -> None:
    await node.claim("c", WHOLE, config=[sharing("TimeSlicing", interval="Long")])
    await node.prepare("c")
    assert node.lengths.lengths == {GPU[0]: TimeSlice.LONG}
    node.start()
    await node.time_slices.reconcile()
    assert node.lengths.lengths == {GPU[0]: TimeSlice.LONG}
    await node.unprepare("c")
    await node.time_slices.reconcile()
    assert node.lengths.lengths == {GPU[0]: TimeSlice.DEFAULT}


async def test_turns_of_a_share_are_not_its_own(node: ClaimNode) -> None:
    await node.claim("c", SHARE, config=[sharing("TimeSlicing", interval="Long")])
    await refused(node, "c", "the interval Long would apply to all claims on the GPU; use Default, or request a whole")
    await node.claim("usual", SHARE, config=[sharing("TimeSlicing", interval="Default")])
    await node.prepare("usual")
    assert node.lengths.calls == 0


async def test_nothing_starts_before_turns_have_their_length(node: ClaimNode) -> None:
    node.lengths.broken = "nvidia-smi does not set the time slice"
    await node.claim("c", WHOLE, config=[sharing("TimeSlicing", interval="Short")])
    await refused(node, "c", "claim default/c cannot have turns of the length short: nvidia-smi does not", Outside)
    assert node.spec(cdi_name("uid-of-c", "gpu")) is None


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("then", ["prepare", "unprepare"])
@pytest.mark.parametrize("preparing", [True, False])
async def test_an_agent_that_dies_at_any_step(tmp_path: Path, torn: bool, then: str, preparing: bool) -> None:
    for at in itertools.count():
        node = ClaimNode(tmp_path / str(at))
        await by_mps(node, "c", WHOLE, prepare=not preparing, **LIMITS)
        died = await dies(node, at, torn=torn, preparing=preparing)
        await node.claim("d", WHOLE)
        if then == "prepare":
            await node.prepare("c")
            assert node.mps.daemons[GPU[0]].memory == "10240M" and node.nvml.exclusive == {GPU[0]}, at
            await refused(node, "d", "has no room", NotYet)
        else:
            await node.unprepare("c")
            assert (node.mps.daemons, node.nvml.exclusive, node.left()) == ({}, set(), []), at
            await node.prepare("d")
        if not died:
            assert at > 4
            return
