"""`preemption.delaySeconds` and `minimumRuntimeMinutes` hold for what kube-scheduler evicts and for the controller."""

from datetime import UTC, datetime

import pytest

from lamina.configuration import load
from lamina.controller.eviction.preemption import SETTLED_S
from lamina.controller.eviction.victims import PodVictims
from lamina.dialects.groups import GROUP_LABEL
from lamina.errors import BadInput
from lamina.ports.kube import PODS, Object
from lamina.ports.kube.moments import rfc3339
from tests.controller.pod_groups import group
from tests.controller.preempting import MIB, Preempting
from tests.worlds.clocks import SettableClock

START_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
HEADER = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n"


@pytest.fixture
async def cluster() -> Preempting:
    """Two nodes with a GPU each, and two pods on each of them that have just started."""
    made = Preempting("node-0", "node-1", clock=SettableClock(START_S))
    await made.fill()
    for name in made.names:
        await set_status(made, name, {"startTime": rfc3339(START_S)})
    return made


async def set_status(cluster: Preempting, name: str, status: Object) -> Object:
    return await cluster.bench.kube.patch(PODS, name, {"status": status}, namespace="default", subresource="status")


def configure(cluster: Preempting, rules: str) -> None:
    assert cluster.bench.configuration.update(f"{HEADER}preemption: {rules}\n", "test") == ""


async def asked(cluster: Preempting, pod: Object, **named: list[str]) -> dict[str, set[str]]:
    """The names of the victims by node, as kube-scheduler asks for them; `node_0=["low-0"]` are those it has named."""
    uids = {obj["metadata"]["name"]: obj["metadata"]["uid"] for obj in (await cluster.bench.kube.list(PODS)).items}
    names = {uid: name for name, uid in uids.items()}
    victims = PodVictims(cluster.bench.context, cluster.gangs)
    candidates = {node.replace("_", "-"): [uids[name] for name in there] for node, there in named.items()}
    found = (await victims.preempt(cluster.bench.parse(pod), candidates))["nodeNameToMetaVictims"]
    return {node: {names[each["uid"]] for each in answer["pods"]} for node, answer in found.items()}


async def unschedulable(cluster: Preempting, name: str, *, since_s: float, reason: str = "Unschedulable") -> Object:
    """The pod, whose status says since when it waits."""
    since = {"reason": reason, "lastTransitionTime": rfc3339(since_s)}
    return await set_status(cluster, name, {"conditions": [{"type": "PodScheduled", "status": "False", **since}]})


async def test_the_controller_evicts_for_a_pod_that_has_waited(cluster: Preempting) -> None:
    configure(cluster, "{delaySeconds: 120}")
    high = await cluster.pod("high", priority=10)
    await cluster.refused(high, after_s=119)
    assert await cluster.evicted() == set()
    await cluster.refused(high, after_s=1)
    assert len(await cluster.evicted()) == 1


@pytest.mark.parametrize("delay_s", [0, 120])
async def test_kube_scheduler_evicts_for_a_pod_that_has_waited(cluster: Preempting, delay_s: int) -> None:
    configure(cluster, f"{{delaySeconds: {delay_s}}}")
    await cluster.pod("high", priority=10, gpumem=MIB)
    new = await set_status(cluster, "high", {})
    gated = await unschedulable(cluster, "high", since_s=START_S - 600, reason="SchedulingGated")
    just = await unschedulable(cluster, "high", since_s=START_S - 119)
    for pod in (new, gated, just):
        assert bool(await asked(cluster, pod, node_0=[])) is (delay_s == 0)
    assert await asked(cluster, await unschedulable(cluster, "high", since_s=START_S - 120), node_0=[]) == {
        "node-0": {"low-0", "low-2"}
    }


async def test_a_pod_that_was_gated_for_long_waits_from_its_first_try(cluster: Preempting) -> None:
    configure(cluster, "{delaySeconds: 120}")
    await cluster.pod("high", priority=10)
    high = await unschedulable(cluster, "high", since_s=START_S - 600)
    parsed = cluster.bench.parse(high)
    cluster.bench.context.pending.observe_try(parsed, "no room", cluster.bench.clock.monotonic())
    assert await asked(cluster, high, node_0=[]) == {}
    cluster.bench.clock.time += 120
    assert await asked(cluster, high, node_0=[]) != {}


async def test_pods_run_for_the_minimum_and_then_go(cluster: Preempting) -> None:
    configure(cluster, "{minimumRuntimeMinutes: 10}")
    await set_status(cluster, "low-3", {"startTime": rfc3339(START_S - 600)})
    high = await cluster.pod("high", priority=10)
    whole = await cluster.pod("whole", priority=10, gpumem=MIB)
    assert await asked(cluster, high, node_0=[], node_1=[]) == {"node-1": {"low-3"}}
    assert await asked(cluster, whole, node_0=[], node_1=[]) == {}
    await cluster.refused(whole)
    assert await cluster.evicted() == set()
    await cluster.refused(high)
    assert await cluster.evicted() == {"low-3"}


async def test_victims_of_kube_scheduler_are_spared_or_exchanged(cluster: Preempting) -> None:
    configure(cluster, "{minimumRuntimeMinutes: 10}")
    await set_status(cluster, "low-2", {"startTime": rfc3339(START_S - 600)})
    high = await cluster.pod("high", priority=10)
    assert await asked(cluster, high, node_0=["low-0"]) == {"node-0": {"low-2"}}
    assert await asked(cluster, high, node_1=["low-1"]) == {}
    assert await asked(cluster, with_port(high), node_0=["low-0"]) == {}, "another pod may not have the port"


def with_port(pod: Object) -> Object:
    """The pod with a port of its node, so that no other pod makes as good a victim."""
    [container] = pod["spec"]["containers"]
    return {**pod, "spec": {**pod["spec"], "containers": [{**container, "ports": [{"hostPort": 80}]}]}}


async def test_a_victim_without_gpus_is_not_spared(cluster: Preempting) -> None:
    configure(cluster, "{minimumRuntimeMinutes: 10}")
    await set_status(cluster, "low-0", {"startTime": rfc3339(START_S - 600)})
    spec = {"nodeName": "node-0", "containers": [{"name": "main", "image": "example.com/main"}]}
    plain = {"metadata": {"name": "plain", "namespace": "default"}, "spec": spec}
    await cluster.bench.kube.create(PODS, plain)
    high = await cluster.pod("high", priority=10)
    assert await asked(cluster, with_port(high), node_0=["plain"]) == {"node-0": {"plain", "low-0"}}


@pytest.mark.parametrize(
    ("rules", "waits_s", "gone"),
    [
        ("{delaySeconds: 60}", 30, 0),
        ("{delaySeconds: 60}", 60, 4),
        ("{minimumRuntimeMinutes: 2}", 60, 0),
        ("{minimumRuntimeMinutes: 2}", 120, 4),
    ],
)
async def test_both_hold_for_groups(cluster: Preempting, rules: str, waits_s: float, gone: int) -> None:
    configure(cluster, rules)
    await group(cluster.bench, "g", 2)
    pods = [await cluster.pod(f"g-{each}", priority=10, gpumem=MIB, labels={GROUP_LABEL: "g"}) for each in range(2)]
    for pod in pods:
        assert (await cluster.filter_member(pod)).fitting == []
    cluster.bench.clock.time += max(waits_s, SETTLED_S)
    await cluster.preemption.reconcile()
    assert len(await cluster.evicted()) == gone


@pytest.mark.parametrize("wall_s", [START_S - 3600, START_S + 3600])
async def test_without_rules_no_clock_matters(cluster: Preempting, wall_s: float) -> None:
    cluster.bench.clock.wall_time = wall_s
    high = await cluster.pod("high", priority=10, gpumem=MIB)
    assert await asked(cluster, high, node_0=[]) == {"node-0": {"low-0", "low-2"}}


@pytest.mark.parametrize(
    "rules", ["{delaySeconds: -1}", "{delaySeconds: 86401}", "{minimumRuntimeMinutes: 43201}", "{delay: 5}", "5"]
)
def test_other_values_are_refused(rules: str) -> None:
    with pytest.raises(BadInput):
        load(f"{HEADER}preemption: {rules}\n", "test")
