"""A bind takes the pod from what the watch reported, and reads it only where that is not enough."""

import msgspec
import pytest

from lamina.configuration import DEFAULT
from lamina.controller import pending_pods
from lamina.controller.pending_pods import PendingPods
from lamina.ledger.pod_stages import PodState, Stage
from lamina.ledger.pods import parse_pod
from lamina.ports.kube import PODS, Object
from tests.controller.binders import Bench
from tests.controller.cluster import admitted_pod


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.offer()
    return made


def report(bench: Bench, pod: Object) -> None:
    """The watch reports the pod, pending."""
    bench.context.pending.observe(bench.parse(pod))
    bench.ledger.observe_pod(pod["metadata"]["uid"], PodState(Stage.PENDING), bench.context.now())


def reads(bench: Bench) -> int:
    return sum(call[:2] == ("get", PODS) for call in bench.kube.calls)  # type: ignore[attr-defined]


async def test_a_pod_that_was_reported_is_not_read(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    report(bench, pod)
    assert await bench.binder.bind(bench.args(pod, "node-0")) == ""
    assert reads(bench) == 0 and await bench.node_of(pod) == "node-0" and bench.memory() == 1000


async def test_a_pod_is_read_after_the_configuration_has_changed(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    report(bench, pod)
    bench.configuration.value = msgspec.structs.replace(DEFAULT)
    assert await bench.binder.bind(bench.args(pod, "node-0")) == ""
    assert reads(bench) == 1


@pytest.mark.parametrize("stage", [Stage.BOUND, Stage.FINISHED, Stage.GONE])
async def test_a_pod_that_is_no_longer_pending_is_read(bench: Bench, stage: Stage) -> None:
    pod = await bench.pod(gpumem=1000)
    report(bench, pod)
    bench.ledger.observe_pod(pod["metadata"]["uid"], PodState(stage, "node-0"), bench.context.now())
    await bench.bind(pod)
    assert reads(bench) >= 1


async def test_a_pod_that_is_gone_meanwhile_leaves_no_grant(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    report(bench, pod)
    await bench.kube.delete(PODS, "pod", namespace="default")
    assert "no longer exists" in await bench.bind(pod)
    assert await bench.grants() == [] and bench.memory() == 0


async def test_a_pod_that_was_replaced_leaves_no_grant(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    report(bench, pod)
    await bench.kube.delete(PODS, "pod", namespace="default")
    await bench.pod(gpumem=2000)
    assert "replaced" in await bench.bind(pod)
    assert await bench.grants() == [] and bench.memory() == 0


async def test_what_callers_of_the_extender_send_does_not_count(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    report(bench, pod)
    forged = {**pod, "spec": admitted_pod(gpumem=10)["spec"]}
    bench.decisions.filter(bench.parse(forged), ["node-0"])
    assert await bench.bind(forged) == "" and bench.memory() == 1000


def pod(name: str, **metadata: object) -> Object:
    made = admitted_pod(name, gpumem=1000)
    made["metadata"] |= {"uid": name, "resourceVersion": "1", **metadata}
    return made


def test_only_the_same_version_is_not_parsed_again() -> None:
    pending = PendingPods()
    pending.observe(parse_pod(pod("p"), DEFAULT))
    assert pending.same(pod("p"), DEFAULT) is not None
    for other in (pod("p", resourceVersion="2"), pod("q"), pod("p", resourceVersion=None), {}):
        assert pending.same(other, DEFAULT) is None


def test_few_and_small_pods_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_pods, "MOST_PODS", 2)
    pending = PendingPods()
    large = {"large": "x" * 20_000}
    for each in (pod("a"), pod("b", annotations=large), pod("c", managedFields=[large]), pod("d")):
        pending.observe(parse_pod(each, DEFAULT))
    assert [uid for uid in "abcd" if pending.pod(uid, DEFAULT)] == ["a", "c"]
    pending.forget("a")
    pending.observe(parse_pod(pod("d"), DEFAULT))
    assert pending.pod("d", DEFAULT) and not pending.pod("a", DEFAULT)
