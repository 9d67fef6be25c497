"""A bind takes the pod from what the watch reported, and reads it only where that is not enough."""

import msgspec
import pytest

from lamina.configuration import DEFAULT
from lamina.controller import pending_pods
from lamina.controller.pending_pods import MAX_REFUSED_S, PendingPods
from lamina.ledger.pod_stages import PodState, Stage
from lamina.ledger.pods import parse_pod
from lamina.ports.kube import PODS, Object
from tests.controller.binders import Bench
from tests.worlds.objects import admitted_pod


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
    bench.scheduler.filter(bench.parse(forged), ["node-0"])
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
    monkeypatch.setattr(pending_pods, "MAX_REPORTED", 2)
    pending = PendingPods()
    large = {"large": "x" * 20_000}
    for each in (pod("a"), pod("b", annotations=large), pod("c", managedFields=[large]), pod("d")):
        pending.observe(parse_pod(each, DEFAULT))
    assert [uid for uid in "abcd" if pending.pod(uid, DEFAULT)] == ["a", "c"]
    pending.forget("a")
    pending.observe(parse_pod(pod("d"), DEFAULT))
    assert pending.pod("d", DEFAULT) and not pending.pod("a", DEFAULT)


def test_the_pods_tried_longest_ago_give_way_unless_the_watch_reported_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_pods, "MAX_PODS", 2)
    pending = PendingPods()
    pending.observe(parse_pod(pod("reported"), DEFAULT))
    for name in ("reported", "a", "b", "a", "c"):
        pending.observe_try(parse_pod(pod(name), DEFAULT), "memory", 0.0)
    assert [each.uid for each in pending] == ["reported", "a", "c"]
    pending.unread("reported")
    assert [each.uid for each in pending] == ["a", "c"]


def test_everything_known_of_a_pod_is_dropped_together() -> None:
    pending = PendingPods()
    nominated = {**pod("p"), "status": {"nominatedNodeName": "node-0"}}
    pending.observe(parse_pod(nominated, DEFAULT))
    pending.observe_try(parse_pod(nominated, DEFAULT), "memory", 0.0)
    pending.tried(parse_pod(nominated, DEFAULT)).sent_to_one = True
    assert pending.nominated == {"p": "node-0"}
    pending.forget("p")
    assert pending.of("p") is None and not pending.nominated
    assert not pending.tried(parse_pod(nominated, DEFAULT)).sent_to_one


def test_nothing_is_kept_of_pods_that_do_not_exist_yet() -> None:
    pending = PendingPods()
    made = pod("p", uid="")
    pending.observe_try(parse_pod(made, DEFAULT), "memory", 0.0)
    assert list(pending) == []


@pytest.mark.parametrize(("after", "since"), [(MAX_REFUSED_S, 0.0), (MAX_REFUSED_S + 1, None)])
def test_a_pod_is_refused_since_its_first_failed_try(after: float, since: float | None) -> None:
    pending, made = PendingPods(), parse_pod(pod("p"), DEFAULT)
    pending.observe_try(made, "memory", 0.0)
    pending.observe_try(made, "cores", after)
    known = pending.of("p")
    assert known is not None and known.refused_since == (after if since is None else since)
    pending.observe_try(made, "", after)
    pending.observe_try(made, "cores", after + 1)
    assert known.refused_since == after + 1 and known.waits
