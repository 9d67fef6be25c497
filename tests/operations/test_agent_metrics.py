"""What GPUs and containers use, as agents report it through the API server."""

import pytest

from lamina.core.quantities import MIB
from lamina.operations.agent_metrics import AT_ONCE, read_use
from lamina.ports.kube import NODES, PODS, Refused
from lamina.ports.kube.fake import FakeKube
from lamina.report.cluster_use import ClusterUse, GpuLoad, MigDeviceOf, ShareFigures
from tests.operations.agent_pages import agent_pod, claim_lines, gpu_lines, mig_lines, native_lines, serve, share_lines


async def test_the_pod_of_an_agent_is_asked_and_otherwise_the_node() -> None:
    kube = FakeKube()
    serve(kube, "a", gpu_lines("a", "GPU-a", 300, 12.5), pod=True)
    serve(kube, "b", gpu_lines("b", "GPU-b", 7, 0))
    use = await read_use(kube, ["a", "b"], [agent_pod("a"), agent_pod("b", phase="Failed")])
    a, b = (GpuLoad(used, busy, node, 0, "Tesla T4", 15360) for used, busy, node in ((300, 12.5, "a"), (7, 0.0, "b")))
    assert use.gpus == {"GPU-a": a, "GPU-b": b} and use.silent == {}
    assert sorted(kube.calls) == [("proxied", NODES, "b:9394"), ("proxied", PODS, "agent-of-a:9394")]


async def test_pods_that_only_have_the_labels_of_an_agent_are_not_asked() -> None:
    kube, pretender = FakeKube(), agent_pod("a")
    pretender["metadata"]["namespace"] = "tenant"
    await read_use(kube, ["a"], [pretender])
    assert kube.calls == [("proxied", NODES, "a:9394")]


async def test_an_agent_that_does_not_answer_leaves_only_its_node_unknown() -> None:
    kube = FakeKube()
    serve(kube, "a", gpu_lines("a", "GPU-a", 300, 1))
    serve(kube, "odd", "lamina_gpu_memory_used_bytes{node=")
    kube.failing["proxied"] = lambda resource, name: Refused("not allowed") if name.startswith("denied") else None
    use = await read_use(kube, ["a", "b", "odd", "denied"], [])
    assert list(use.gpus) == ["GPU-a"] and set(use.silent) == {"b", "odd", "denied"}
    assert use.silent["denied"] == "not allowed" and use.silent["odd"].startswith("its metrics cannot be read")


async def test_where_none_of_the_first_agents_answers_the_others_are_not_asked() -> None:
    kube, nodes = FakeKube(), [f"n{number:03}" for number in range(100)]
    use = await read_use(kube, nodes, [])
    assert set(use.silent) == set(nodes) and len(kube.calls) <= 2 * AT_ONCE
    assert use.silent["n099"] == f"it was not asked, because the agents of {AT_ONCE} other nodes did not answer"
    serve(kube, "n000", gpu_lines("n000", "GPU-a", 300, 1))
    kube.calls.clear()
    assert len((await read_use(kube, nodes, [])).silent) == 99 and len(kube.calls) == 100


def test_an_agent_speaks_for_its_own_node_only() -> None:
    use = ClusterUse()
    use.add("a", gpu_lines("b", "GPU-b", 300, 1) + share_lines("b", "p", "GPU-b", data=5))
    assert use == ClusterUse()


def test_a_name_with_a_line_separator_is_one_line() -> None:
    use = ClusterUse()
    use.add("a", gpu_lines("a", "GPU-a", 300, 1).replace("GPU-a", "GPU-\u2028lamina_gpu_memory_used_bytes{"))
    assert list(use.gpus) == ["GPU-\u2028lamina_gpu_memory_used_bytes{"]


def test_kinds_of_allocations_are_added() -> None:
    use = ClusterUse()
    page = share_lines("a", "p", "GPU-a", data=100, context=303, limit=1000, borrowed=50, peak=900, refusals=2, busy=40)
    use.add("a", page)
    expected = ShareFigures(used_mib=403, limit_mib=1000, borrowed_mib=50, peak_mib=900, refusals=2, busy_percent=40.0)
    assert use.share(("default", "p", "main"), "GPU-a") == expected


def test_what_an_agent_does_not_know_of_a_container_is_none() -> None:
    use = ClusterUse()
    use.add("a", native_lines("a", "p", "GPU-a", limit_mib=1000))
    assert use.share(("default", "p", "main"), "GPU-a") == ShareFigures(limit_mib=1000)
    assert use.shares["default", "p", "main"]["GPU-a"].used_mib is None


def test_mig_devices_belong_to_their_gpus_and_claims_are_apart_from_containers() -> None:
    use = ClusterUse()
    use.add("a", gpu_lines("a", "GPU-a", 0, 0, index=3, reason="XID 79") + mig_lines("a", "GPU-a", "MIG-1", "MIG-2"))
    use.add("a", claim_lines("a", "c/gpu", "GPU-b", data=5, cores=30) + share_lines("a", "c", "GPU-b", data=6))
    assert use.mig_devices["MIG-2"] == MigDeviceOf("GPU-a", "1g.5gb", 4864)
    assert (use.gpu_of("MIG-1"), use.gpu_of("GPU-b")) == ("GPU-a", "GPU-b")
    assert (use.gpus["GPU-a"].gpu_index, use.gpus["GPU-a"].reason) == (3, "XID 79")
    claimed, held = use.claim(("default", "c", "gpu"), "GPU-b"), use.share(("default", "c", "main"), "GPU-b")
    assert claimed is not None and (claimed.used_mib, claimed.cores_percent) == (5, 30)
    assert held is not None and held.used_mib == 6


@pytest.mark.parametrize(("devices", "known"), [(("MIG-1",), True), (("MIG-1", "MIG-2"), False)])
def test_a_container_with_one_mig_device_is_known_by_the_gpu_too(devices: tuple[str, ...], known: bool) -> None:
    use = ClusterUse()
    use.add("a", "".join(share_lines("a", "p", device, data=5) for device in devices))
    assert (use.share(("default", "p", "main"), "GPU-a") is not None) is known
    assert use.share(("default", "other", "main"), "GPU-a") is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1e300"])
@pytest.mark.parametrize("page", ["gpu", "share", "mig"])
async def test_amounts_that_no_gpu_has_are_not_figures(page: str, value: str) -> None:
    lines = {
        "gpu": gpu_lines("a", "GPU-a", 300, 1).replace(f" {300 * MIB}\n", f" {value}\n"),
        "share": share_lines("a", "p", "GPU-a", data=100).replace(f" {100 * MIB}\n", f" {value}\n"),
        "mig": mig_lines("a", "GPU-a", "MIG-1").replace(f" {4864 * MIB}\n", f" {value}\n"),
    }[page]
    assert f" {value}\n" in lines
    kube = FakeKube()
    serve(kube, "a", lines)
    use = await read_use(kube, ["a"], [])
    assert use.silent["a"].startswith("its metrics cannot be read: ")
