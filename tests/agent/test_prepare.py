"""From tickets to a container's limits: the one way it works, and every doubt."""

import pytest

from lamina.agent.state.gpu_health import ObservedGpu
from lamina.core.gpus import Mode
from lamina.errors import LaminaError, NotYet, Outside
from lamina.ports.kube import GRANTS, PODS
from lamina.ports.kubelet.allocations import Holder
from tests.agent.node import FACTS, GPU, Node, container, share


async def test_a_quota_container_gets_its_limits_the_facade_and_its_gpu(node: Node) -> None:
    uid = await node.pod("p", container("main", share(1, 5000)))
    names = await node.admit("p", {"main": ["ticket-3"]})
    await node.preparer.prepare(["ticket-3"])
    edits = node.spec(names["main"])
    assert edits is not None
    assert edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={GPU[1]}"]
    folder = node.places.containers / f"{uid}_main"
    assert {m["containerPath"]: (m["hostPath"], m["options"][0]) for m in edits["mounts"]} == {
        "/run/lamina/limits": (str(folder / "limits"), "ro"),
        "/run/lamina/usage": (str(folder / "usage"), "rw"),
        "/run/lamina/arbiter": (str(folder / "arbiter"), "ro"),
        "/run/lamina/signal": (str(folder / "signal"), "rw"),
        "/run/lamina/neighbors": (str(folder / "neighbors"), "ro"),
        "/run/lamina-driver": (str(node.places.driver), "ro"),
        "/usr/local/lamina/1/libcuda.so.1": (str(node.places.libraries.folder / "libcuda.so.1"), "ro"),
        "/usr/local/lamina/1/libcuda.so": (str(node.places.libraries.folder / "libcuda.so"), "ro"),
        "/usr/local/lamina/1/libnvidia-ml.so.1": (str(node.places.libraries.folder / "libnvidia-ml.so.1"), "ro"),
        "/etc/ld.so.preload": (str(node.places.libraries.folder / "ld.so.preload"), "ro"),
        f"/var/run/nvidia-container-devices/{GPU[1]}": ("/dev/null", "ro"),
    }
    assert node.limits(names["main"]) == "main:1:5000"
    assert (folder / "limits").stat().st_mode & 0o777 == 0o444
    assert (folder / "usage").stat().st_mode & 0o777 == 0o666


async def test_a_whole_gpu_container_gets_its_gpus_and_nothing_else(node: Node) -> None:
    await node.pod("p", container("main", share(2, 32768, mode=Mode.WHOLE), share(0, 32768, mode=Mode.WHOLE)))
    names = await node.admit("p", {"main": ["ticket-0", "ticket-1"]})
    await node.preparer.prepare(["ticket-1", "ticket-0"])
    edits = node.spec(names["main"])
    assert edits is not None and edits.keys() == {"env", "mounts"}
    assert edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={GPU[0]},{GPU[2]}"]
    named = [f"/var/run/nvidia-container-devices/{GPU[0]}", f"/var/run/nvidia-container-devices/{GPU[2]}"]
    assert {each["containerPath"]: each["hostPath"] for each in edits["mounts"]} == dict.fromkeys(named, "/dev/null")
    assert not node.places.containers.exists()


async def test_shares_are_in_the_order_of_the_gpus(node: Node) -> None:
    await node.pod("p", container("main", share(3, 300), share(1, 100)))
    names = await node.admit("p", {"main": ["ticket-0", "ticket-1"]})
    await node.preparer.prepare(["ticket-0", "ticket-1"])
    assert node.limits(names["main"]) == "main:1:100 main:3:300"


async def test_a_second_start_keeps_the_name_and_makes_all_files_again(node: Node) -> None:
    uid = await node.pod("p", container("main"))
    names = await node.admit("p", {"main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    usage = node.places.containers / f"{uid}_main" / "usage"
    usage.write_text("what the tenant left")
    before = usage.stat().st_ino
    node.start()
    await node.preparer.prepare(["ticket-0"])
    assert usage.read_text() == ""
    assert usage.stat().st_ino != before or usage.stat().st_size == 0
    assert node.limits(names["main"]) == "main:0:1000"


async def refusal(node: Node, *tickets: str) -> str:
    """Why the tickets are not prepared; nothing may have been made."""
    before = node.disk()
    with pytest.raises(LaminaError) as caught:
        await node.preparer.prepare(tickets)
    assert node.disk() == before
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


async def test_no_holder(node: Node) -> None:
    await node.pod("p", container("main"))
    node.allocate("ticket-0")
    assert "lists no container with these tickets" in await refusal(node, "ticket-0")


async def test_kubelet_does_not_answer(node: Node) -> None:
    node.kubelet.broken = "kubelet is away"
    assert await refusal(node, "ticket-0") == "kubelet is away"


async def test_a_holder_of_more_tickets_is_not_the_holder(node: Node) -> None:
    await node.pod("p", container("main", share(0), share(1)))
    await node.admit("p", {"main": ["ticket-0", "ticket-1"]})
    assert "has no container that can have 1 nvidia.com/gpu" in await refusal(node, "ticket-0")


async def test_two_pods_hold_them(node: Node) -> None:
    await node.pod("p", container("main"))
    await node.pod("q", container("main"))
    await node.admit("p", {"main": ["ticket-0"]})
    await node.admit("q", {"main": ["ticket-0"]})
    assert "several pods with these tickets: default/p and default/q" in await refusal(node, "ticket-0")


async def test_two_containers_hold_them(node: Node) -> None:
    await node.pod("p", container("a"), container("b"))
    await node.admit("p", {"a": ["ticket-0"], "b": ["ticket-0"]})
    assert "several containers of default/p with these tickets: a, b" in await refusal(node, "ticket-0")


async def test_two_pods_of_one_name(node: Node) -> None:
    await node.pod("p", container("main"))
    await node.admit("p", {"main": ["ticket-0"]})
    node.kubelet.hold("p", "main", "ticket-7")
    assert "two pods with the name default/p" in await refusal(node, "ticket-0")


async def test_the_pod_is_gone(node: Node) -> None:
    await node.admit("p", {"main": ["ticket-0"]})
    assert await refusal(node, "ticket-0") == "pod default/p does not exist in Kubernetes any more"


async def test_the_pod_is_on_another_node(node: Node) -> None:
    await node.pod("p", container("main"), node="node-2")
    await node.admit("p", {"main": ["ticket-0"]})
    assert "Kubernetes has it on node-2" in await refusal(node, "ticket-0")


async def test_no_grant(node: Node) -> None:
    await node.pod("p")
    await node.admit("p", {"main": ["ticket-0"]})
    assert "default/p has no grant" in await refusal(node, "ticket-0")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"podUID": "another"}, "is for UID another"),
        ({"node": "node-2"}, "is for node node-2"),
        ({"containers": "nonsense"}, "cannot be read"),
        ({"containers": []}, 'has no container "main"'),
        ({"containers": [{"name": "other", "shares": []}]}, 'has no container "main"'),
    ],
)
async def test_a_grant_for_something_else(node: Node, change: dict[str, object], why: str) -> None:
    await node.pod("p", container("main"), grant=change)
    await node.admit("p", {"main": ["ticket-0"]})
    assert why in await refusal(node, "ticket-0")


async def test_a_grant_with_another_number_of_gpus(node: Node) -> None:
    await node.pod("p", container("main", share(0), share(1)))
    await node.admit("p", {"main": ["ticket-0"]})
    assert "has 2 nvidia.com/gpu, but kubelet allocated 1" in await refusal(node, "ticket-0")


async def test_a_gpu_that_is_gone_or_sick(node: Node) -> None:
    await node.pod("p", container("main", share(1)))
    await node.admit("p", {"main": ["ticket-0"]})
    node.gpus[GPU[1]] = ObservedGpu(FACTS[1], "the driver reported XID 79")
    assert "is unhealthy: the driver reported XID 79" in await refusal(node, "ticket-0")
    del node.gpus[GPU[1]]
    assert "does not exist on this node" in await refusal(node, "ticket-0")
    node.gpus[GPU[1]] = ObservedGpu(FACTS[1])
    await node.preparer.prepare(["ticket-0"])


async def test_tickets_without_a_name(node: Node) -> None:
    await node.pod("p", container("main"))
    node.kubelet.listed.append(Holder("default", "p", "main", frozenset({"ticket-0"})))
    assert "no Allocate call is on record for these tickets" in await refusal(node, "ticket-0")


async def test_names_of_an_earlier_pod_are_not_used(node: Node) -> None:
    uid = await node.pod("p", container("main"))
    await node.admit("p", {"main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    (grant,) = (await node.kube.list(GRANTS)).items
    assert grant["spec"]["podUID"] == uid
    await node.kube.delete(PODS, "p", namespace="default")
    await node.pod("p", container("main"))
    assert "no Allocate call is on record" in await refusal(node, "ticket-0")


async def test_a_disk_that_refuses_is_an_error_with_its_path(node: Node) -> None:
    await node.pod("p", container("main"))
    await node.admit("p", {"main": ["ticket-0"]})
    node.places.cdi.write_text("a file where a folder should be")
    with pytest.raises(Outside, match="cdi"):
        await node.preparer.prepare(["ticket-0"])


async def test_a_refusal_is_followed_by_a_start_once_the_reason_is_gone(node: Node) -> None:
    await node.pod("p", container("main"))
    names = {"main": node.allocate("ticket-0")}
    with pytest.raises(NotYet):
        await node.preparer.prepare(["ticket-0"])
    node.kubelet.hold("p", "main", "ticket-0")
    await node.preparer.prepare(["ticket-0"])
    assert node.limits(names["main"]) == "main:0:1000"
