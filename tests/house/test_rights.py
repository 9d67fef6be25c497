"""The rules of which roles are made name all that the components and commands request of the API server, and nothing
that they do not."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lamina.config_source.live import text_in_force
from lamina.configuration import DEFAULT
from lamina.defragmentation.plan import plan
from lamina.defragmentation.run import DefragRun
from lamina.dialects.groups import GROUP_ANNOTATION, GROUP_LABEL
from lamina.install import rights as install_rights
from lamina.install import rights_of_commands
from lamina.operations import agent_metrics
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.feed import ClusterFeed
from lamina.operations.dashboard.viewers import DashboardViewers
from lamina.operations.mig import mig_nodes
from lamina.operations.node_labels import labeled_nodes
from lamina.ports.clock import FakeClock
from lamina.ports.kube import CONFIG_MAPS, INVENTORIES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS, RESOURCE_SLICES
from lamina.ports.kube.fake import FakeKube
from lamina.report import cluster_reader
from lamina.report.fit_groups import read_needed
from lamina.report.pod_claims import read_claims
from lamina.report.pod_templates import PodTemplate
from lamina.report.refusals import last_refusal, refused_workloads
from tests.agent.node import RESOURCE, container, share
from tests.agent.running_agent import RunningAgent as Agent
from tests.cli.doctor_patient import Patient
from tests.cli.reset_cluster import half_gone
from tests.cli.reset_cluster import run as reset
from tests.controller.borrower_world import Borrowing
from tests.controller.cluster import running
from tests.controller.defrag_controller import controller as running_controller
from tests.controller.idle_world import IdleCluster
from tests.defragmentation.cluster import FragmentedKube
from tests.operations.agent_pages import agent_pod
from tests.operations.dashboard.viewers import ViewersKube
from tests.waiting import until
from tests.worlds.clocks import JumpingClock
from tests.worlds.objects import admitted_pod, gpus, inventory_object
from tests.worlds.workload_pods import SPECS, metadata_of

MEMBERS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"labels": {GROUP_LABEL: "g"}}, {}),
    ({"annotations": {GROUP_ANNOTATION: "g"}}, {}),
    ({}, {"schedulingGroup": {"podGroupName": "g"}}),
    *((metadata_of(kind, "g", 0), {}) for kind in SPECS),
)
"""A part of the metadata and of the spec of members of each kind of group."""
RESOURCE_SLICE = {
    "metadata": {"name": "n-gpu.nvidia.com-0"},
    "spec": {"driver": "gpu.nvidia.com", "nodeName": "n", "pool": {"name": "n", "generation": 1}},
}
RULES = {
    "controller": (
        *install_rights.CONTROLLER_CLUSTER,
        *install_rights.CONTROLLER_OWN,
        install_rights.MAKES_ITS_NAMESPACE,
    ),
    "agent": (*install_rights.AGENT_CLUSTER, *install_rights.AGENT_OWN, *install_rights.AGENT_OF_NVIDIA),
    "defragmentation": install_rights.DEFRAGMENTATION_CLUSTER,
    "preemption": install_rights.PREEMPTION_CLUSTER,
    "idle shares": install_rights.IDLE_SHARES_CLUSTER,
    "borrowers": install_rights.BORROWERS_CLUSTER,
    "reader": rights_of_commands.READER,
    "dashboard": rights_of_commands.DASHBOARD,
    "dashboard in the cluster": (*install_rights.DASHBOARD_CLUSTER, *install_rights.DASHBOARD_OWN),
    "refusals": rights_of_commands.REFUSALS,
    "configuration": rights_of_commands.CONFIGURATION,
    "metrics": rights_of_commands.METRICS,
    "labels": rights_of_commands.NODE_LABELS,
    "refused workloads": rights_of_commands.REFUSED_WORKLOADS,
    "hosts": rights_of_commands.HOSTS,
    "groups": rights_of_commands.GROUPS,
    "mig list": rights_of_commands.MIG_LIST,
    "claims": (*rights_of_commands.CLAIMS, *rights_of_commands.CLAIMS_IF_POSSIBLE),
    "defrag": rights_of_commands.DEFRAG,
    "doctor": rights_of_commands.DOCTOR,
    "reset": rights_of_commands.RESET,
    "reset --all": rights_of_commands.RESET_ALL,
}
VERBS = {"replace": "update"}
BY_POD = {"bind": "pods/binding", "evict": "pods/eviction"}
RARE = {
    ("controller", "secrets", "update"),  # a year on
    ("controller", "customresourcedefinitions.apiextensions.k8s.io", "update"),  # after an upgrade
    ("controller", "pods/eviction", "create"),  # a pod has had tickets without a grant for minutes
    ("controller", "events", "get"),  # an event of an earlier run
    ("controller", "events", "patch"),
    ("controller", "grants.lamina.dev", "get"),  # a bind that was cut off
    ("controller", "grants.lamina.dev", "delete"),
    ("controller", "grants.lamina.dev", "update"),  # only when a pod is resized
    ("controller", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "delete"),  # with `enabled: false`
    ("controller", "namespaces", "create"),  # only where it is missing
}

RARE_OF_AGENT = {
    ("agent", "configmaps", "get"),  # without --config
    ("agent", "clusterpolicies.nvidia.com", "watch"),  # only where the kind is defined
    ("agent", "events", "create"),  # when another configuration of NVIDIA's holds, or is refused
    ("agent", "events", "get"),
    ("agent", "events", "patch"),
}


class Noted:
    """An API server that notes what is asked of it through this door."""

    def __init__(self, part: str, kube: FakeKube) -> None:
        self._part, self._kube = part, kube
        self.lamina_namespace = kube.lamina_namespace
        self.asked: set[tuple[str, str, str]] = set()

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def note(*arguments: Any, **named: Any) -> Any:
            if verb in BY_POD:
                self.asked.add((self._part, BY_POD[verb], "create"))
            elif verb == "proxied":
                self.asked.add((self._part, f"{arguments[0].plural}/proxy", "get"))
            else:
                kind = arguments[0]
                name = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
                name += "/status" if named.get("subresource") == "status" else ""
                self.asked.add((self._part, name, VERBS.get(verb, verb)))
            return getattr(self._kube, verb)(*arguments, **named)

        return note


def rights(part: str) -> set[tuple[str, str, str]]:
    return {(part, rule.resource, verb) for rule in RULES[part] for verb in rule.verbs.split()}


async def test_the_control_part(tmp_path: Path) -> None:
    kube = FakeKube()
    noted = Noted("controller", kube)
    await kube.create(CONFIG_MAPS, {"metadata": {"name": "lamina", "namespace": "lamina-system"}})
    stranger = {("controller", "nodes", "create"), ("controller", "inventories.lamina.dev", "create")}  # the test's own
    async with running(noted, tmp_path) as made:
        pod = await kube.create(PODS, admitted_pod("p", gpumem=1000))
        assert await made.scheduler.bind(pod, "node-0") == ""
        big = await kube.create(PODS, admitted_pod("q", gpumem=99999))
        await made.scheduler.filter(big, "node-0")
        await made.scheduler.ask("preempt", {"pod": big, "nodenametometavictims": {"node-0": {"pods": []}}})
        for number, (metadata, spec) in enumerate(MEMBERS):
            small = admitted_pod(f"of-group-{number}", gpumem=1000)
            small["metadata"] |= metadata
            small["spec"] |= spec
            await made.scheduler.filter(await kube.create(PODS, small), "node-0")
        body = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpumem": 1}}}
        await kube.create(RESOURCE_QUOTAS, body)
        reported = ("controller", "resourcequotas/status", "patch")
        free = ("controller", "inventories.lamina.dev/status", "patch")
        await until(lambda: {reported, free} <= noted.asked, task=made.task)
        text = {"data": {"lamina.yaml": "resourceName: example.com/gpu"}}
        await kube.patch(CONFIG_MAPS, "lamina", text, namespace="lamina-system")
        update = ("controller", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "update")
        await until(lambda: update in noted.asked and ("controller", "pods", "patch") in noted.asked, task=made.task)
    assert noted.asked - stranger | RARE == rights("controller")


async def test_the_control_part_that_evicts_pods(tmp_path: Path) -> None:
    kube, clock = FakeKube(), FakeClock()
    noted = Noted("preemption", kube)
    async with running(noted, tmp_path, ("node-0", gpus(1)), clock=clock, preemption=True) as made:
        low, high = admitted_pod("low", gpu=1), admitted_pod("high", gpu=1)
        high["spec"]["priority"] = 10
        assert await made.scheduler.bind(await kube.create(PODS, low), "node-0") == ""
        await made.scheduler.filter(await kube.create(PODS, high), "node-0")
        evicted = ("preemption", "pods/eviction", "create")
        await until(lambda: evicted in noted.asked, task=made.task, clock=clock)
    others = {("preemption", resource, verb) for _, resource, verb in rights("controller") - RARE}
    assert noted.asked & rights("preemption") - others == rights("preemption")


async def test_the_agent() -> None:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        agent = Agent(Path(folder))
        kube = agent.kube
        await kube.create(NODES, {"metadata": {"name": agent.node.name, "labels": {"gpu": "on"}}})
        await agent.kubelet.start()
        agent.kube = noted = Noted("agent", kube)  # type: ignore[assignment]
        try:
            await agent.start('nodes: {selector: {gpu: "on"}}')
            await agent.devices(RESOURCE, 20)
            await agent.node.pod("p", container("main", share(0, 4096)))
            await agent.started("p", "ticket-4")
            (agent.settings.containers / "00000000-unknown_main").mkdir()
            agent.nvml.strike("", 79)
            await agent.inventory(lambda found: not any(gpu.healthy for gpu in found.gpus))
            await agent.stop()
            await agent.start()
            await agent.devices(RESOURCE, 20)
            await agent.until(lambda: ("agent", "nodes/status", "patch") in noted.asked)
        finally:
            await agent.stop()
            await agent.kubelet.stop()
    assert noted.asked | RARE_OF_AGENT == rights("agent")


async def test_people_who_look() -> None:
    kube = FakeKube()
    await kube.create(INVENTORIES, inventory_object())
    noted = Noted("reader", kube)
    await cluster_reader.read(noted)
    assert noted.asked == rights("reader")


async def test_people_who_look_at_refused_workloads() -> None:
    noted = Noted("refused workloads", FakeKube())
    await refused_workloads(noted, DEFAULT, None)
    assert noted.asked == rights("refused workloads")


async def test_people_who_ask_where_pods_fit() -> None:
    noted = Noted("hosts", FakeKube())
    await cluster_reader.read(noted, hosts=True)
    assert noted.asked == as_a_reader("hosts")


async def test_people_who_look_at_pods_with_claims() -> None:
    kube = FakeKube()
    for resource in (RESOURCE_CLAIMS, RESOURCE_SLICES):
        await kube.create(resource, {"metadata": {"name": "a", "namespace": "default"}, "spec": {}})
    noted = Noted("claims", kube)
    await read_claims(noted)
    assert noted.asked == rights("claims")


async def test_people_who_ask_where_pod_groups_fit() -> None:
    noted = Noted("groups", FakeKube())
    pods = [{"metadata": {"namespace": "default", **metadata}, "spec": spec} for metadata, spec in MEMBERS]
    await read_needed(noted, [PodTemplate("Pod p", pod, 1) for pod in pods], {}, DEFAULT)
    assert noted.asked == rights("groups")


async def test_people_who_look_at_refusals() -> None:
    noted = Noted("refusals", FakeKube())
    await last_refusal(noted, {"metadata": {"name": "p", "namespace": "default", "uid": "u"}})
    assert noted.asked == rights("refusals")


async def test_people_who_look_at_the_configuration() -> None:
    noted = Noted("configuration", FakeKube())
    await text_in_force(noted)
    assert noted.asked == rights("configuration")


async def test_people_who_look_at_what_gpus_use() -> None:
    kube = FakeKube()
    await kube.create(PODS, agent_pod("node-0"))
    noted = Noted("metrics", kube)
    await agent_metrics.read_use(noted, ["node-0"], (await kube.list(PODS)).items)
    assert noted.asked == rights("metrics")


async def test_people_who_select_nodes_by_labels() -> None:
    noted = Noted("labels", FakeKube())
    assert await labeled_nodes(noted, ["n"], None) == ["n"] and not noted.asked
    await labeled_nodes(noted, ["n"], lambda labels: True)
    assert noted.asked == rights("labels")


async def test_people_who_look_at_mig_devices() -> None:
    noted = Noted("mig list", FakeKube())
    await mig_nodes(noted)
    assert noted.asked == rights("mig list")


def as_a_reader(part: str) -> set[tuple[str, str, str]]:
    """The rights of who looks, and those of the part."""
    return rights(part) | {(part, resource, verb) for _, resource, verb in rights("reader")}


async def add_members(kube: FakeKube) -> None:
    """A pod that waits of each kind of group."""
    for number, (metadata, spec) in enumerate(MEMBERS):
        waits = admitted_pod(f"of-group-{number}", gpumem=1000)
        waits["metadata"] |= metadata
        await kube.create(PODS, waits | {"spec": waits["spec"] | spec})


async def test_the_dashboard() -> None:
    kube = FakeKube()
    await add_members(kube)
    await kube.create(INVENTORIES, inventory_object())
    await kube.create(RESOURCE_SLICES, RESOURCE_SLICE)
    noted, clock, board = Noted("dashboard", kube), FakeClock(), Board()
    following = asyncio.ensure_future(ClusterFeed(noted, clock, board).run())
    try:
        await until(lambda: noted.asked >= rights("dashboard"), task=following, clock=clock)
    finally:
        following.cancel()
    assert noted.asked == as_a_reader("dashboard") - {("dashboard", "configmaps", "get")}


async def test_the_dashboard_in_the_cluster() -> None:
    kube = ViewersKube()
    part = "dashboard in the cluster"
    await add_members(kube)
    await kube.create(INVENTORIES, {"metadata": {"name": "n"}, "spec": {}})
    await kube.create(RESOURCE_SLICES, RESOURCE_SLICE)
    noted, clock, board = Noted(part, kube), FakeClock(), Board()
    following = asyncio.ensure_future(ClusterFeed(noted, clock, board).run())
    try:
        await DashboardViewers(noted, clock).access("of-a", "", ["team-a"])
        await until(lambda: noted.asked >= rights(part), task=following, clock=clock)
    finally:
        following.cancel()
    assert noted.asked == rights(part)


async def test_defragmentation() -> None:
    """It has the rights of the controller as well."""
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    noted = Noted("defragmentation", kube)
    await running_controller(noted, JumpingClock()).evictions.defragmentation.reconcile()
    assert kube.evicted == ["a"]
    of_the_controller = {("defragmentation", resource, verb) for _, resource, verb in rights("controller") - RARE}
    assert noted.asked - of_the_controller == rights("defragmentation")


async def test_reclaiming_idle_shares() -> None:
    """It has the rights of the controller as well."""
    asked: set[tuple[str, str, str]] = set()
    for owner, action in (("ReplicaSet", "scaleToZero"), ("StatefulSet", "scaleToZero"), ("Job", "evict")):
        world = IdleCluster(f"hours: 4, namespaces: [default], action: {action}")
        await world.begin("a", owner=owner)
        noted = Noted("idle shares", world.kube)
        await world.round(4, kube=noted)
        await world.round(0.5, kube=noted)
        asked |= noted.asked
    of_the_controller = {("idle shares", resource, verb) for _, resource, verb in rights("controller") - RARE}
    assert asked - of_the_controller == rights("idle shares")


async def test_evicting_borrowers() -> None:
    """It has the rights of the controller as well."""
    world = Borrowing()
    await world.begin("a")
    await world.displace("a")
    noted = Noted("borrowers", world.kube)
    await world.look(kube=noted)
    await world.look(60, kube=noted)
    of_the_controller = {("borrowers", resource, verb) for _, resource, verb in rights("controller") - RARE}
    assert noted.asked - of_the_controller == rights("borrowers")


async def test_defrag() -> None:
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    noted = Noted("defrag", kube)
    cluster = await cluster_reader.read(noted)
    work = DefragRun(noted, JumpingClock(), patience_s=60)
    assert [line async for line in work.run(cluster, list(plan(cluster, 20)))]
    assert noted.asked == as_a_reader("defrag")


async def test_the_doctor() -> None:
    patient = Patient()
    patient.refusal = None  # admission is away: the pod that it should refuse has to be removed
    noted = Noted("doctor", patient.kube)
    await patient.findings(noted)
    of_claims = {("doctor", resource, verb) for _, resource, verb in rights("claims")}
    assert noted.asked | of_claims == as_a_reader("doctor") | of_claims


async def test_reset() -> None:
    kube = await half_gone()
    noted = Noted("reset", kube)
    await reset(noted)
    await reset(noted)  # the configuration is there now
    assert noted.asked == as_a_reader("reset")
    noted = Noted("reset --all", kube)
    await reset(noted, everything=True)
    always = {("reset --all", resource, verb) for _, resource, verb in as_a_reader("reset")}
    assert rights("reset --all") <= noted.asked <= rights("reset --all") | always
