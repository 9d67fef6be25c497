"""Pods with claims are scheduled only while their claims are within the quotas of the namespace."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import jsonpatch
import pytest

from lamina.controller.claims.gate import ClaimGate
from lamina.core.claims import HeldClaim
from lamina.core.gpus import Inventory
from lamina.core.grants import ContainerGrant, Share
from lamina.dialects.claim_gate import GATE, gate_claims
from lamina.dra.names import DRIVER
from lamina.ledger.pod_stages import PodState, Stage
from lamina.ledger.used_claims import ClaimName
from lamina.ports.kube import EVENTS, PODS, EventRecorder, Object
from lamina.report.claim_quotas import WaitingForQuotas
from tests.controller.binders import Bench
from tests.waiting import canceled
from tests.worlds.clocks import settle
from tests.worlds.objects import gpus, inventory

MEMORY, CORES = "limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores"
WHOLE: dict[str, str] = {}
NODE = "node-0"


class Gated(Bench):
    """A cluster of one node with two GPUs of 32768 MiB."""

    def __init__(self) -> None:
        super().__init__()
        events = EventRecorder(self.kube, "test", now=self.clock.wall)
        self.usage = self.context.claim_usage
        self.gate = ClaimGate(self.context, self.usage, events, lambda: self.leads)
        self.offer(NODE, *gpus(2))

    def quota(self, **hard: str) -> None:
        named = {{"memory": MEMORY, "cores": CORES}.get(name, name): value for name, value in hard.items()}
        self.quotas.observe({"metadata": {"namespace": "default", "name": "q"}, "spec": {"hard": named}})

    def claim(self, name: str, *results: Object, device_class: str = DRIVER, **amounts: str) -> None:
        exactly = {"deviceClassName": device_class, "capacity": {"requests": amounts}}
        status = {"allocation": {"devices": {"results": list(results)}}} if results else {}
        meta = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
        spec = {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}
        self.cluster_state.claims.observe({"metadata": meta, "spec": spec, "status": status})

    def prepared(self, *names: str, memory_mib: int, uid: str = "") -> None:
        """Their node says that it has prepared these claims, with their own UIDs or another one."""
        share = Share(gpu="GPU-0", memory_mib=memory_mib)
        request = ContainerGrant(name="one", shares=(share,))
        claims = tuple(
            HeldClaim(namespace="default", name=n, uid=uid or f"uid-of-{n}", requests=(request,)) for n in names
        )
        self.ledger.observe_inventory(Inventory(node=NODE, gpus=inventory(NODE, *gpus(2)).gpus, claims=claims))

    async def waits(self, name: str, *claims: str, gates: tuple[str, ...] = (GATE,), template: str = "") -> Object:
        """A pod that admission gave the gate. The claim of a `template` has not been made."""
        entries = [{"name": f"e{at}", "resourceClaimName": each} for at, each in enumerate(claims)]
        entries += [{"name": "made", "resourceClaimTemplateName": template}] if template else []
        spec = {"resourceClaims": entries, "schedulingGates": [{"name": each} for each in gates]}
        meta = {"name": name, "namespace": "default", "labels": {GATE: "true"}}
        return await self.kube.create(PODS, {"metadata": meta, "spec": {"containers": [], **spec}})

    async def step(self) -> None:
        await settle(20)
        await self.gate.step()
        await settle(20)

    async def waiting(self) -> list[str]:
        await self.step()
        pods = (await self.kube.list(PODS)).items
        return sorted(
            pod["metadata"]["name"]
            for pod in pods
            if any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or ())
        )

    async def events(self) -> list[str]:
        return [each["message"] for each in (await self.kube.list(EVENTS)).items]


@pytest.fixture
async def gated() -> AsyncIterator[Gated]:
    gated = Gated()
    task = asyncio.create_task(gated.gate.run())
    await gated.step()
    yield gated
    await canceled(task)


async def test_without_a_quota_every_pod_is_scheduled(gated: Gated) -> None:
    await gated.waits("unmade", template="t")
    await gated.waits("missing", "nowhere")
    gated.claim("c")
    await gated.waits("one", "c", gates=("theirs", GATE))
    gated.quotas.observe({"metadata": {"namespace": "default", "name": "cpus"}, "spec": {"hard": {"cpu": "1"}}})
    assert await gated.waiting() == []
    kept = (await gated.kube.get(PODS, "one", namespace="default"))["spec"]["schedulingGates"]
    assert kept == [{"name": "theirs"}], "the gates of others stay"


@pytest.mark.parametrize(
    ("hard", "amounts", "waits"),
    [
        ({"memory": "4096"}, {"memory": "4Gi"}, False),
        ({"memory": "4095"}, {"memory": "4Gi"}, True),
        ({"memory": "0"}, {"memory": "1Mi"}, True),
        ({"memory": "32768"}, WHOLE, False),
        ({"memory": "32767"}, WHOLE, True),
        ({"memory": "0", "requests.nvidia.com/gpu": "0"}, WHOLE, True),
        ({"cores": "30"}, {"memory": "4Gi", "cores": "30"}, False),
        ({"cores": "29"}, {"memory": "4Gi", "cores": "30"}, True),
    ],
)
async def test_a_claim_over_its_quota_is_not_allocated(
    gated: Gated, hard: dict[str, str], amounts: dict[str, str], waits: bool
) -> None:
    gated.quota(**hard)
    gated.claim("c", **amounts)
    pod = await gated.waits("one", "c")
    said = WaitingForQuotas(gated.usage, [pod]).waits(pod)
    assert await gated.waiting() == (["one"] if waits else [])
    assert await gated.events() == ([f"It {said}"] if waits else []) and bool(said) == waits
    await gated.step()
    assert len(await gated.events()) == waits, "it is reported once"


async def test_claims_of_other_drivers_are_not_counted(gated: Gated) -> None:
    gated.quota(memory="0")
    gated.claim("nic", device_class="nic.example.com")
    await gated.waits("one", "nic")
    assert await gated.waiting() == []


async def test_a_class_of_an_administrator_counts(gated: Gated) -> None:
    expression = f'device.attributes["{DRIVER}"].productName == "A100"'
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    gated.cluster_state.claims.observe_class({"metadata": {"name": "team-gpu"}, "spec": spec})
    gated.quota(memory="0")
    gated.claim("c", device_class="team-gpu")
    await gated.waits("one", "c")
    assert await gated.waiting() == ["one"]


async def test_pods_that_may_be_scheduled_count_until_their_claims_are_prepared(gated: Gated) -> None:
    gated.quota(memory="10000")
    for name in "abc":
        gated.claim(name, memory="4000Mi")
        await gated.waits(name, name)
    assert await gated.waiting() == ["c"]
    result = {"request": "one", "driver": DRIVER, "pool": NODE, "device": "gpu-0"}
    gated.claim("a", {**result, "consumedCapacity": {"memory": "4000Mi"}}, memory="4000Mi")
    bound = await gated.kube.get(PODS, "a", namespace="default")
    await gated.kube.bind("a", namespace="default", uid=bound["metadata"]["uid"], node=NODE)
    assert await gated.waiting() == ["c"], "it is allocated, and not prepared yet"
    gated.prepared("a", memory_mib=4000)
    assert await gated.waiting() == ["c"], "it counts once"
    await gated.kube.delete(PODS, "b", namespace="default")
    assert await gated.waiting() == []


async def test_an_agent_hides_no_claim_by_its_uid(gated: Gated) -> None:
    """It publishes a claim that a pod of its node uses under the UID of another namespace's or node's."""
    gated.quota(memory="5000")
    gated.claim("a", memory="4000Mi")
    await gated.waits("a", "a")
    assert await gated.waiting() == []
    gated.ledger.observe_pod("p", PodState(Stage.BOUND, NODE), 1, claims=(ClaimName("default", "x"),))
    gated.prepared("x", memory_mib=1, uid="uid-of-a")
    gated.claim("b", memory="4000Mi")
    await gated.waits("b", "b")
    assert await gated.waiting() == ["b"]


async def test_a_claim_that_pods_share_counts_once(gated: Gated) -> None:
    gated.quota(memory="4000")
    gated.claim("c", memory="4000Mi")
    for name in ("one", "two"):
        await gated.waits(name, "c")
    assert await gated.waiting() == []
    gated.prepared("c", memory_mib=4000)
    await gated.waits("three", "c")
    assert await gated.waiting() == []


async def test_with_a_quota_a_pod_waits_for_its_claims(gated: Gated) -> None:
    gated.quota(memory="4000")
    await gated.waits("unmade", template="t")
    await gated.waits("missing", "c")
    assert await gated.waiting() == ["missing", "unmade"]
    gated.claim("c", memory="1Gi")
    assert await gated.waiting() == ["unmade"]


async def test_only_the_leader_lifts_gates(gated: Gated) -> None:
    gated.leads = False
    await gated.waits("one", "c")
    assert await gated.waiting() == ["one"]
    gated.leads = True
    assert await gated.waiting() == []


ENTRY = {"name": "e", "resourceClaimName": "c"}


@pytest.mark.parametrize(
    ("spec", "gates"),
    [
        ({"resourceClaims": [ENTRY]}, [GATE]),
        ({"resourceClaims": [ENTRY], "schedulingGates": [{"name": "theirs"}]}, ["theirs", GATE]),
        ({"resourceClaims": [ENTRY], "schedulingGates": [{"name": GATE}]}, [GATE]),
        ({"resourceClaims": [ENTRY], "nodeName": "n"}, []),
        ({"resourceClaims": []}, []),
        ({}, []),
    ],
)
@pytest.mark.parametrize("labels", [None, {"a": "b"}, {GATE: "false"}])
def test_admission_gives_each_new_pod_with_claims_the_gate(spec: Any, gates: list[str], labels: Any) -> None:
    pod = {"metadata": {"name": "p", **({"labels": labels} if labels else {})}, "spec": {"containers": [], **spec}}
    patched = jsonpatch.apply_patch(pod, [change.to_json() for change in gate_claims(pod)])
    assert [each["name"] for each in patched["spec"].get("schedulingGates", [])] == gates
    assert (patched["metadata"].get("labels", {}).get(GATE) == "true") == (GATE in gates)
