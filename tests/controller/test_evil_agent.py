"""What one agent writes has no effect on other nodes, namespaces and quotas: a controller with and without it.

The Inventory of the node `evil` lies in one field after the other about the pods of the node `n`, and the same account
writes a ResourceSlice, the status of a ResourceClaim, and events.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import structs
from prometheus_client import generate_latest

from lamina.config_source.live import LiveConfiguration
from lamina.configuration import load
from lamina.controller.assembly import Controller, assemble
from lamina.controller.capacity.inventory_status import InventoryStatuses
from lamina.controller.eviction.borrowers import BorrowerEvictions
from lamina.controller.eviction.evictor import Evictor
from lamina.controller.eviction.idle_shares import IdleEvictions
from lamina.controller.eviction.notices import NoticedEvictions
from lamina.controller.leadership.election import LeaderElection
from lamina.controller.quota_status import update_statuses
from lamina.controller.settings import ControllerSettings
from lamina.core.claims import HeldClaim
from lamina.core.grants import ContainerGrant, Share
from lamina.core.objects import read_inventory, write_spec
from lamina.core.survivors import Survivor
from lamina.ledger.lingering_pods import LingeringPods
from lamina.ledger.used_claims import UsedClaims
from lamina.ports.kube import (
    EVENTS,
    GRANTS,
    INVENTORIES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    EventRecorder,
    Object,
    Resource,
)
from lamina.ports.kube.fake import FakeKube
from lamina.report import cluster_reader
from tests.controller import evil_inventories
from tests.controller.evil_inventories import EVIL, HUGE, SMALL, Subject
from tests.waiting import canceled
from tests.worlds.clocks import JumpingClock, settle
from tests.worlds.clusters import container, grant, inventory, pod

NODE, NAMESPACE = "n", "victim"
SETTINGS = f"""
idleShares: {{hours: 1, noticeMinutes: 1, action: evict, namespaces: [{NAMESPACE}]}}
borrowers: {{seconds: 1, noticeSeconds: 30, namespaces: [{NAMESPACE}]}}
"""
HELD = ("running", "resizing", "ended", "unborn")
"""Pods of the node that a lie may be about; `unborn` comes after the lie, and `ended` is deleted while it runs."""
Evil = tuple[tuple[Resource, Object], ...]


def uid(name: str) -> str:
    return f"uid-{NAMESPACE}-{name}"


def subjects() -> list[Subject]:
    """What lies are about: the pods, claims and GPUs of the other node."""
    return [
        {
            "namespace": NAMESPACE,
            "pod": name,
            "pod_uid": uid(name),
            "container": "main",
            "driver_limited": f"{uid(name)}/main",
            "name": claim,
            "uid": "uid-of-claim",
            "gpu": f"GPU-{NODE}-0",
            "uuid": f"GPU-{NODE}-0",
            "resource": "nvidia.com/gpu",
            "profile": "1g.5gb",
            "node": NODE,
        }
        for name in (*HELD, "waiting", "claimer", "invented")
        for claim in ("main", "claim")
    ]


@dataclass
class TwoNodes:
    """A controller that leads, among the objects of the API server."""

    kube: FakeKube
    clock: JumpingClock
    controller: Controller

    async def settle(self) -> None:
        await settle(60)

    async def live(self, evil: Evil) -> None:
        """Pods start, one is deleted by force, and one is to become smaller."""
        await self.kube.create(INVENTORIES, {"metadata": {"name": NODE}, "spec": write_spec(inventory(NODE, 2))})
        for node in (NODE, EVIL):
            await self.kube.create(NODES, {"metadata": {"name": node}, "status": {"allocatable": {"cpu": "8"}}})
        for resource, obj in evil:
            await self.kube.create(resource, obj)
        hard = {"limits.nvidia.com/gpumem": "9000", "limits.nvidia.com/gpucores": "100"}
        quota = {"metadata": {"name": "q", "namespace": NAMESPACE}, "spec": {"hard": hard}}
        await self.kube.create(RESOURCE_QUOTAS, quota)
        await self.settle()
        for name in HELD:
            await self._held(name)
        await self.kube.create(PODS, pod("waiting", container(gpu=1, gpumem=3000), namespace=NAMESPACE))
        claimer = pod("claimer", container(), namespace=NAMESPACE, node=NODE)
        claimer["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "claim"}]
        claimer["spec"]["containers"][0]["resources"]["claims"] = [{"name": "c"}]
        await self.kube.create(PODS, claimer)
        await self.settle()
        await self.kube.delete(PODS, "ended", namespace=NAMESPACE)
        ended = Survivor(namespace=NAMESPACE, pod="ended", pod_uid=uid("ended"), containers=(_main(1000),))
        obj = await self.kube.get(INVENTORIES, NODE)
        spec = write_spec(structs.replace(read_inventory(obj), survivors=(ended,)))
        await self.kube.replace(INVENTORIES, {**obj, "spec": spec})
        await self.settle()
        for _ in range(3):
            await self._rounds()

    async def _held(self, name: str) -> None:
        made = pod(name, container(gpu=1, gpumem=1000), namespace=NAMESPACE, node=NODE)
        made["status"]["containerStatuses"] = [{"name": "main", "state": {"running": {}}}]
        if name == "resizing":
            made["metadata"]["annotations"] = {"lamina.dev/resize": "main=500"}
        created = await self.kube.create(PODS, made)
        await self.kube.create(GRANTS, grant(created, NODE, 1000, f"GPU-{NODE}-0"))

    async def _rounds(self) -> None:
        """What the leader does again and again."""
        context = self.controller.context
        await self.controller.resizer.reconcile()
        await self.settle()
        statuses = InventoryStatuses(
            self.kube,
            context.cluster_state,
            self.controller.watches.inventory_statuses,
            context.clock,
            self.controller.verbs.nominated.rooms,
        )
        await statuses.step()
        await update_statuses(self.kube, context.quotas, context.ledger, context.configuration.value, context.set_aside)
        evictor = Evictor(self.kube, self.controller.events, lambda: True)
        await IdleEvictions(context, evictor).reconcile()
        await BorrowerEvictions(context, evictor).reconcile()
        await self.settle()
        await self.clock.sleep(61)
        context.ledger.expire(context.now())

    async def outcome(self) -> dict[str, Any]:
        """What there is and is answered, but for the node EVIL."""
        context = self.controller.context
        found: dict[str, Any] = {
            kind.plural: [_without_version(obj) for obj in (await self.kube.list(kind)).items if not _is_evil(obj)]
            for kind in (PODS, GRANTS, INVENTORIES, RESOURCE_QUOTAS, EVENTS)
        }
        found["evicted"] = [call for call in self.kube.calls if call[0] in ("evict", "delete")]
        waiting = context.parse(pod("late", container(gpu=1, gpumem=3000), namespace=NAMESPACE))
        found["filter"] = self.controller.verbs.scheduler.filter(waiting, [NODE])
        text = generate_latest(self.controller.metrics.registry).decode()
        lines = [line for line in text.splitlines() if line.startswith("lamina_") and "_created " not in line]
        found["metrics"] = [line for line in lines if EVIL not in line]
        found["taken"] = context.ledger.totals.taken(NODE), context.ledger.totals.taken_in_namespace(NAMESPACE)
        view = await cluster_reader.read(self.kube)
        found["view"] = view.rules.refused_everywhere(waiting), view.ledger.totals.taken(NODE)
        return found


def _main(memory_mib: int) -> ContainerGrant:
    return ContainerGrant(name="main", shares=(Share(gpu=f"GPU-{NODE}-0", memory_mib=memory_mib),))


def _is_evil(obj: Object) -> bool:
    return EVIL in obj["metadata"]["name"]


def _without_version(obj: Object) -> Object:
    kept = {key: value for key, value in obj["metadata"].items() if key in ("name", "namespace", "annotations")}
    return obj | {"metadata": kept}


@asynccontextmanager
async def world() -> AsyncIterator[TwoNodes]:
    kube, clock = FakeKube(), JumpingClock(1_700_000_000.0)
    text = f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n{SETTINGS}"
    configuration = LiveConfiguration(load(text, "test"), text)
    events = EventRecorder(kube, "lamina", now=clock.wall)
    made = TwoNodes(kube, clock, assemble(kube, clock, ControllerSettings(identity="one"), configuration, events))
    watching = asyncio.create_task(made.controller.watches.run())
    await made.settle()
    yield made
    await canceled(watching)


async def outcome(*evil: tuple[Resource, Object]) -> dict[str, Any]:
    async with world() as made:
        await made.live(evil)
        return await made.outcome()


@pytest.fixture(autouse=True)
def _leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaderElection, "leading", True)


async def same_as_without(*evil: tuple[Resource, Object]) -> None:
    expected, found = await outcome(), await outcome(*evil)
    for what, value in expected.items():
        assert found[what] == value, what


@pytest.mark.parametrize("number", [SMALL, HUGE])
@pytest.mark.parametrize("field", [field for field in evil_inventories.fields() if field != "node"])
async def test_no_field_of_an_inventory_changes_anything_elsewhere(field: str, number: int) -> None:
    obj = evil_inventories.inventory(field, subjects(), number)
    read_inventory(obj)  # it is not set aside
    await same_as_without((INVENTORIES, obj))


async def test_all_fields_together_change_nothing_elsewhere() -> None:
    spec: Object = {}
    for field in evil_inventories.fields():
        if field != "node":
            spec |= evil_inventories.inventory(field, subjects(), HUGE)["spec"]
    await same_as_without((INVENTORIES, {"metadata": {"name": EVIL}, "spec": spec}))


async def test_an_inventory_in_the_name_of_another_node_is_set_aside() -> None:
    spec = write_spec(inventory(NODE, 9)) | {"idle": [{"podUID": uid("running"), "since": 0}]}
    expected, found = await outcome(), await outcome((INVENTORIES, {"metadata": {"name": EVIL}, "spec": spec}))
    assert {what for what, value in expected.items() if found[what] != value} == {"metrics"}
    assert [line for line in found["metrics"] if line not in expected["metrics"] and "set_aside" not in line] == []


DEVICE = {"driver": "gpu.nvidia.com", "pool": NODE, "device": f"gpu-{NODE}-0", "request": "gpu"}
OTHERS: dict[str, Evil] = {
    "slices": tuple(
        (
            RESOURCE_SLICES,
            {
                "metadata": {"name": f"{EVIL}-{number}"},
                "spec": {
                    "driver": "gpu.nvidia.com",
                    "nodeName": node,
                    "pool": {"name": pool, "generation": HUGE, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0", "attributes": {"uuid": {"string": f"GPU-{NODE}-0"}}}],
                },
            },
        )
        for number, (node, pool) in enumerate(((EVIL, NODE), (NODE, NODE), (EVIL, EVIL), (NODE, EVIL)))
    ),
    "claims": (
        (
            RESOURCE_CLAIMS,
            {
                "metadata": {"name": "claim", "namespace": NAMESPACE, "uid": "uid-of-claim"},
                "spec": {"devices": {"requests": [{"name": "gpu"}]}},
                "status": {
                    "allocation": {"devices": {"results": [DEVICE]}},
                    "reservedFor": [{"resource": "pods", "name": "running", "uid": uid("running")}],
                    "devices": [DEVICE | {"conditions": [{"type": "Ready", "status": "False"}]}],
                },
            },
        ),
    ),
    "events": tuple(
        (
            EVENTS,
            {
                "metadata": {"name": f"{EVIL}-{reason}", "namespace": NAMESPACE},
                "involvedObject": {"kind": "Pod", "name": "running", "namespace": NAMESPACE, "uid": uid("running")},
                "reason": reason,
                "source": {"component": "lamina-agent", "host": NODE},
            },
        )
        for reason in ("OutOfGpuMemory", "IdleNotice", "BorrowerNotice", "IdleShareReclaimed", "Resized")
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
async def test_other_objects_of_an_agent_change_nothing_elsewhere(kind: str) -> None:
    await same_as_without(*OTHERS[kind])


def _listed(self: NoticedEvictions) -> dict[str, int]:
    """As if agents spoke for pods of all nodes."""
    reports, of = self.context.ledger._reports, self.listed_since
    return {uid: 0 for uid in reports.uids() if of(reports.of(uid, EVIL)) is not None}


def _namespace(self: LingeringPods, uid: str) -> str:
    return next((each.namespace for each in self._published.get(uid, {}).values()), "")


def _used(self: UsedClaims, node: str, claims: tuple[HeldClaim, ...]) -> tuple[HeldClaim, ...]:
    return claims


@pytest.mark.parametrize(
    ("field", "of", "name", "believing"),
    [
        ("idle", NoticedEvictions, "_listed", _listed),
        ("displaced", NoticedEvictions, "_listed", _listed),
        ("survivors", LingeringPods, "namespace", _namespace),
        ("claims", UsedClaims, "used", _used),
    ],
)
async def test_an_agent_that_is_believed_is_noticed(
    field: str, of: type, name: str, believing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of, name, believing)
    with pytest.raises(AssertionError):
        await same_as_without((INVENTORIES, evil_inventories.inventory(field, subjects(), HUGE)))
