"""Every view knows pods with ResourceClaims, from their creation on, and gives one reason."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from lamina.core.gpus import Inventory
from lamina.dialects.claim_gate import GATE
from lamina.dra.slices import DIGEST
from lamina.operations.dashboard.view import NodeCondition, document_of
from lamina.operations.doctor.claims import claim_pods
from lamina.ports.kube import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    EVENTS,
    GRANTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    Object,
    Refused,
)
from lamina.ports.kube.fake import FakeKube
from lamina.report import cluster_reader
from lamina.report.claim_quotas import NOT_CHECKED
from lamina.report.pod_claims import NOT_PREPARED
from lamina.report.reasons import CREATED, all_run, waiting_because
from tests.cli.commands import Commands
from tests.lab_scheduler.device_objects import CLASSES, claim, gpu, request, slices
from tests.report.held_claims import claim as held_claim
from tests.report.held_claims import holding
from tests.worlds.clusters import cluster, container, grant, inventory, pod

GPU: Object = {"name": "gpu"}
NIC = {
    "metadata": {"name": "nic"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'nic.example.com'"}}]},
}


def share(memory: str = "", cls: str = "gpu.nvidia.com", **more: Any) -> Object:
    amounts = {"capacity": {"requests": {"memory": memory}}} if memory else {}
    return request("gpu", cls, **amounts, **more)


def user(name: str = "p", *, claims: str = "c", template: str = "", node: str = "", **status: Any) -> Object:
    """A pod with a container that uses a claim, or one of a template."""
    entry = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claims}
    main = {"name": "main", "resources": {"claims": [GPU]}}
    return pod(name, main, node=node, resourceClaims=[GPU | entry], status=status)


def allocated(of: Object, device: str = "gpu-0", memory: str = "4Gi", node: str = "n") -> Object:
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": device}
    result |= {"consumedCapacity": {"memory": memory}} if memory else {}
    return of | {"status": {"allocation": {"devices": {"results": [result]}}}}


def event(of: Object, message: str, at: str = "2026-01-01T00:00:00Z") -> Object:
    involved = {"name": of["metadata"]["name"], "uid": of["metadata"]["uid"], "namespace": "default"}
    meta = {"name": f"e-{at}", "namespace": "default"}
    return {"metadata": meta, "reason": NOT_PREPARED, "involvedObject": involved, "message": message,
            "lastTimestamp": at}  # fmt: skip


CREATING = {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]}
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}
ENDED = {"name": "side", "state": {"terminated": {"exitCode": 0}}}


def gated(of: Object, *gates: str) -> Object:
    """The pod as admission lets it in, with gates of others."""
    gates_of_pod = [{"name": each} for each in (*gates, GATE)]
    meta = of["metadata"] | {"labels": {GATE: "true"}}
    return of | {"metadata": meta, "spec": of["spec"] | {"schedulingGates": gates_of_pod}}


def quota(mib: int) -> Object:
    return {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpumem": str(mib)}}}


def over(allowed: int, used: int, claim_name: str = "c") -> str:
    numbers = f"quota q allows {allowed} of nvidia.com/gpumem; {used} are used and claim default/{claim_name} requests"
    return f"the pod waits until there is room in a quota of its namespace: {numbers} 4096"


class Case(NamedTuple):
    pod: Object
    others: tuple[Any, ...] = ()
    status: str = "Pending"
    reason: str = ""
    runs: bool = False
    node: Inventory = inventory("n", 2)


def template(spec: Object) -> Object:
    return {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": spec["spec"]}}


NEEDS_60 = "node n: request gpu needs 61440 MiB; the largest device has 16384 MiB"
CASES = {
    "too big": Case(user(), (claim("c", share("60Gi")),), reason=NEEDS_60),
    "too big by a template": Case(user(template="t"), (template(claim("", share("60Gi"))),), reason=NEEDS_60),
    "no room now": Case(
        user(),
        (claim("c", share("14Gi")), allocated(claim("d", share())), allocated(claim("e", share()), "gpu-1")),
        reason="node n: request gpu needs 14336 MiB; the best device has 12288 MiB free",
    ),
    "no whole GPU": Case(
        user(),
        (claim("c", share()), allocated(claim("d", share())), allocated(claim("e", share()), "gpu-1", "")),
        reason="node n: request gpu needs a whole device; none of 2 is free",
    ),
    "no class": Case(
        user(),
        (claim("c", share(cls="vfio.gpu.nvidia.com")),),
        reason="ResourceClaim c needs DeviceClass vfio.gpu.nvidia.com, which does not exist",
    ),
    "no claim": Case(user(), reason="ResourceClaim c does not exist"),
    "no template": Case(user(template="t"), reason="ResourceClaimTemplate t does not exist"),
    "a claim that goes": Case(
        user(),
        (claim("c", share()) | {"metadata": {"name": "c", "namespace": "default", "deletionTimestamp": "x"}},),
        reason="ResourceClaim c is being deleted",
    ),
    "a class of another driver": Case(
        user(),
        (
            claim("c", share(cls="hami")),
            {"metadata": {"name": "hami"},
             "spec": {"selectors": [{"cel": {"expression": "device.driver == 'hami-core-gpu.project-hami.io'"}}]}},
        ),
        reason="node n: request gpu: no device here is of DeviceClass hami",
    ),
    "tainted": Case(
        user(),
        (
            claim("c", share()),
            {"metadata": {"name": "repair"}, "kind": "DeviceTaintRule",
             "spec": {"deviceSelector": {}, "taint": {"key": "repair", "effect": "NoExecute"}}},
        ),
        reason="node n: request gpu: all of 2 devices of DeviceClass gpu.nvidia.com have the taint repair",
    ),
    "elsewhere": Case(
        user(),
        (allocated(claim("c", share()), node="m"),),
        reason="node n: ResourceClaim c is allocated on node m",
    ),
    "with a share as well": Case(
        pod("p", container(gpu=1, gpumem=999999) | {"name": "a"},
            {"name": "b", "resources": {"claims": [GPU]}}, resourceClaims=[GPU | {"resourceClaimName": "c"}]),
        (claim("c", share("1Gi")),),
        reason="node n: needs 999999 MiB; the largest GPU has 15360 MiB",
    ),
    "by the resource of a class": Case(
        pod("p", {"name": "main",
                  "resources": {"limits": {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": "3"}}}),
        reason="node n: request main needs 3 devices of DeviceClass gpu.nvidia.com; this node offers 2",
    ),
    "it would fit": Case(user(), (claim("c", share("1Gi")),), reason="not yet tried by the scheduler"),
    "over its quota": Case(gated(user()), (claim("c", share("4Gi")), quota(4000)), reason=over(4000, 0)),
    "over its quota, before its claim is made": Case(
        gated(user(template="t")), (template(claim("", share("4Gi"))), quota(4000)), reason=over(4000, 0, "p-gpu")
    ),
    "over its quota, with a share as well": Case(
        gated(pod("p", container(gpu=1, gpumem=10) | {"name": "a"},
                  {"name": "b", "resources": {"claims": [GPU]}}, resourceClaims=[GPU | {"resourceClaimName": "c"}])),
        (claim("c", share("4Gi")), quota(4000)),
        reason=over(4000, 0),
    ),
    "over its quota because of a claim that is not prepared": Case(
        gated(user()), (claim("c", share("4Gi")), allocated(claim("d", share())), quota(5000)), reason=over(5000, 4096)
    ),
    "within its quota": Case(
        gated(user()), (claim("c", share("4Gi")), quota(5000)), reason=f"the pod {NOT_CHECKED}"
    ),
    "without a quota": Case(gated(user()), (claim("c", share("4Gi")),), reason=f"the pod {NOT_CHECKED}"),
    "with a gate and no claim": Case(gated(user()), reason="the pod is pending: ResourceClaim c does not exist"),
    "with a gate of others": Case(
        gated(user(), "theirs"),
        (claim("c", share("4Gi")),),
        reason=f"the pod is held by the gates theirs and {GATE}",
    ),
    "by both doors": Case(
        pod("p", container(gpu=1, gpumem=10) | {"resources": {"limits": {"nvidia.com/gpu": "1"}, "claims": [GPU]}},
            resourceClaims=[GPU | {"resourceClaimName": "c"}]),
        (claim("c", share("1Gi")),),
        reason='container "main" uses a ResourceClaim for GPUs and requests GPUs by resources, but a container has one '
        "set of limits; ask for both in the claim, or use two containers",
    ),
    "created": Case(
        user(node="n", phase="Pending", **CREATING),
        (allocated(claim("c", share())),),
        "ContainerCreating",
        CREATED,
    ),
    "not prepared": Case(
        user(node="n", phase="Pending", **CREATING),
        (
            allocated(claim("c", share())),
            event(user(), "an older one"),
            event(user(), "Lamina: request gpu: the interval Long", "2026-01-02T00:00:00Z"),
            event(user("other"), "of another pod", "2026-01-03T00:00:00Z"),
        ),
        "ContainerCreating",
        "Lamina: request gpu: the interval Long",
    ),
    "no status yet": Case(user(node="n", phase="Pending"), (), "ContainerCreating", CREATED),
    "running": Case(user(node="n", **RUNNING), (allocated(claim("c", share())),), "Running", "", True),
    "running and prepared": Case(
        user(node="n", **RUNNING),
        (allocated(claim("c", share())),),
        "Running",
        "",
        True,
        holding(held_claim("c", ("gpu", 4096)), gpus=2),
    ),
    "one container has ended": Case(
        user(node="n", phase="Running", containerStatuses=[*RUNNING["containerStatuses"], ENDED]),
        (allocated(claim("c", share())),),
        "Running",
    ),
    "failed": Case(user(node="n", phase="Failed"), (), "Failed", "it has failed"),
}  # fmt: skip
KINDS = {"DeviceTaintRule": DEVICE_TAINT_RULES}


async def world(*others: Any, node: Inventory | None = None) -> FakeKube:
    kube = await cluster(node or inventory("n", 2))
    for each in slices(
        gpu("gpu-0", memory_gib=16, shareable=True), gpu("gpu-1", memory_gib=16, shareable=True), pool="n"
    ):
        each["metadata"]["annotations"] = {DIGEST: "x"}
        await kube.create(RESOURCE_SLICES, each)
    for each in (*CLASSES, NIC, *others):
        await kube.create(kind_of(each), each)
    return kube


def kind_of(obj: Object) -> Any:
    if "reason" in obj:
        return EVENTS
    if obj.get("kind") in KINDS:
        return KINDS[obj["kind"]]
    if "hard" in obj["spec"]:
        return RESOURCE_QUOTAS
    if "spec" in obj["spec"]:
        return RESOURCE_CLAIM_TEMPLATES
    return RESOURCE_CLAIMS if "devices" in obj["spec"] else DEVICE_CLASSES


async def of_case(case: Case) -> FakeKube:
    kube = await world(*case.others, node=case.node)
    await kube.create(PODS, case.pod)
    return kube


@pytest.mark.parametrize("name", CASES)
async def test_all_views_give_the_same_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    kube = await of_case(case)
    commands = Commands(monkeypatch, kube)
    view = await cluster_reader.read(kube, hosts=True, claims=True)
    [row] = json.loads((await commands.run("pods", "-o", "json")).output)
    assert (row["pod"], row["status"], row["reason"]) == ("p", case.status, case.reason)
    table = (await commands.run("pods")).output
    assert case.status in table and case.reason in table
    [listed] = [each for each in view.pods if each["metadata"]["name"] == "p"]
    assert (waiting_because(view, listed), all_run(listed)) == (case.reason, case.runs)
    text, answer = await commands.run("why", "p"), json.loads((await commands.run("why", "p", "-o", "json")).output)
    assert "requests no GPU" not in text.output and text.code == int(bool(case.reason))
    assert answer["runs"] is case.runs
    if case.reason != "not yet tried by the scheduler":
        assert case.reason.removeprefix("the pod ") in text.output
    document = document_of(view, {"n": NodeCondition()})
    card = document.pods[case.pod["metadata"]["uid"]]
    assert card.reason == case.reason
    waits = case.status in ("Pending", "ContainerCreating", "Failed")
    assert document.cluster.waiting_pods == int(waits) and (card.state == "running") is not waits
    findings = [each.state.value for each in claim_pods(view)]
    if case.status == "Failed":
        assert findings == []
    else:
        assert findings == ["warning" if case.reason not in ("", CREATED) else "ok"]


async def test_gpus_of_claims_that_are_not_prepared_take_no_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = pod("asked", container(gpu=1, gpumem=10))
    held = [allocated(claim(name, share()), f"gpu-{at}") for at, name in enumerate("de")]
    kube = await of_case(Case(asked, tuple(held)))
    said = "node n: ResourceClaims hold each GPU; it can be shared when their pods have ended"
    commands, file = Commands(monkeypatch, kube), manifest(tmp_path, asked)
    assert said in (await commands.run("why", "asked")).output
    assert (await commands.run("fits", "-f", file)).output.startswith(f"Pod asked does not fit now: {said}")
    document = document_of(await cluster_reader.read(kube, hosts=True, claims=True), {"n": NodeCondition()})
    assert [each.mode for each in document.nodes["n"].gpus] == ["claims", "claims"]
    rows = json.loads((await commands.run("gpus", "-o", "json")).output)
    assert [(row["mode"], row["memoryFreeMib"], row["slotsFree"]) for row in rows] == [("claims", None, None)] * 2
    card = document.pods[asked["metadata"]["uid"]]
    assert card.reason == said and not any("No pod that ends" in way for way in card.ways_out)
    await kube.delete(RESOURCE_CLAIMS, "e", namespace="default")
    assert (await commands.run("fits", "-f", file)).output == "Pod asked fits now on n GPU 1.\n"


async def test_a_pod_with_a_claim_of_another_device_requests_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await of_case(Case(user(), (claim("c", request("nic", "nic")),)))
    commands = Commands(monkeypatch, kube)
    assert (await commands.run("pods")).output == "No pod in namespace default requests a GPU.\n"
    assert "requests no GPU" in (await commands.run("why", "p")).output


async def test_why_names_who_holds_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    node = holding(held_claim("d", ("a", 16384)), gpus=2)
    others = (claim("c", share()), allocated(claim("d", share()), memory=""), allocated(claim("e", share()), "gpu-1"))
    kube = await of_case(Case(user(), others, node=node))
    granted = pod("granted", container(gpu=1, gpumem=10), node="n")
    await kube.create(PODS, granted)
    await kube.create(GRANTS, grant(granted, "n", 10, "GPU-n-1"))
    lines = (await Commands(monkeypatch, kube).run("why", "p")).output.splitlines()
    assert "  ResourceClaim default/d holds 16384 MiB of GPU 0 of node n" in lines
    assert "  pods hold GPU 1 of node n by grants, so no claim gets it" in lines


async def test_a_viewer_without_rights_to_claims_sees_the_rest_and_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await of_case(Case(user(), (claim("c", share("60Gi")),)))
    await kube.create(PODS, pod("classic", container(gpu=1, gpumem=99999)))
    kube.failing["list"] = lambda resource, name: Refused("no") if resource.group == "resource.k8s.io" else None
    output = (await Commands(monkeypatch, kube).run("pods")).output
    assert output.count("Warning: you may not list resourceclaims") == 1
    assert "classic" in output and "does not exist" not in output and "offers no devices" not in output
    assert [line.split()[0] for line in output.splitlines() if line.startswith(("p ", "classic"))] == ["classic", "p"]


async def test_the_page_counts_what_claims_hold_as_lamina_gpus_does(monkeypatch: pytest.MonkeyPatch) -> None:
    node = holding(held_claim("c", ("gpu", 4096), cores=30), gpus=2)
    kube = await of_case(Case(user(node="n", **RUNNING), (allocated(claim("c", share())),), node=node))
    document = document_of(await cluster_reader.read(kube, claims=True), {"n": NodeCondition()})
    rows = json.loads((await Commands(monkeypatch, kube).run("gpus", "-o", "json")).output)
    assert [(row["memoryGrantedMib"], row["mode"]) for row in rows] == [(4096, "claims"), (0, "idle")]
    assert (document.cluster.granted_mib, document.cluster.granted_cores) == (4096, 30)
    assert [gpu.mode for gpu in document.nodes["n"].gpus] == ["claims", ""]


def manifest(tmp_path: Path, *objects: Object) -> str:
    kinds = {RESOURCE_CLAIMS: "ResourceClaim", RESOURCE_CLAIM_TEMPLATES: "ResourceClaimTemplate"}
    written = [
        {"kind": "Pod", **each} if "containers" in each["spec"] else {"kind": kinds[kind_of(each)], **each}
        for each in objects
    ]
    file = tmp_path / "m.yaml"
    file.write_text(yaml.safe_dump_all(written))
    return str(file)


OPAQUE = share("1Gi", selectors=[{"cel": {"expression": "device.attributes['gpu.nvidia.com'].uuid.startsWith('G')"}}])


@pytest.mark.parametrize(
    ("objects", "code", "fits", "said"),
    [
        ((user(), claim("c", share("1Gi"))), 0, True, "Pod p fits now on n gpu-0."),
        ((user(template="t"), template(claim("", share()))), 0, True, "Pod p fits now on n gpu-0."),
        ((user(), claim("c", share("60Gi"))), 1, False, f"Pod p does not fit now: {NEEDS_60}."),
        ((user(),), 1, False, "Pod p does not fit: ResourceClaim c does not exist."),
        (
            (user(), claim("c", share(cls="absent"))),
            1,
            False,
            "Pod p does not fit: ResourceClaim c needs DeviceClass absent, which does not exist.",
        ),
        ((user(), claim("c", OPAQUE)), 1, None, "Whether Pod p fits is not known: kube-scheduler finds devices"),
        ((user(), claim("c", request("n", "nic"))), 0, True, "Pod p requests no GPU."),
    ],
)
async def test_fits_tries_claims_of_the_manifest(
    objects: tuple[Object, ...], code: int, fits: bool | None, said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    commands = Commands(monkeypatch, await world())
    file = manifest(tmp_path, *objects)
    ended = await commands.run("fits", "-f", file)
    assert (ended.code, ended.output.startswith(said)) == (code, True), ended
    [answer] = json.loads((await commands.run("fits", "-f", file, "-o", "json")).output)
    assert answer["fits"] is fits


async def test_pods_of_a_manifest_take_devices_from_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await world())
    pods = [user(name, template="t") for name in "abc"]
    ended = await commands.run("fits", "-f", manifest(tmp_path, *pods, template(claim("", share()))))
    assert ended.output.splitlines()[:3] == [
        "Pod a fits now on n gpu-0.",
        "Pod b fits now on n gpu-1.",
        "Pod c does not fit now: node n: request gpu needs a whole device; none of 2 is free.",
    ]
    shared = [user(name) for name in "abc"]
    ended = await commands.run("fits", "-f", manifest(tmp_path, *shared, claim("c", share())))
    assert (ended.code, len(ended.output.splitlines())) == (0, 3), "one claim is allocated once"


BOTH = pod(
    "both",
    container(gpu=1, gpumem=10) | {"resources": {"limits": {"nvidia.com/gpu": "1"}, "claims": [GPU]}},
    resourceClaims=[GPU | {"resourceClaimTemplateName": "t"}],
)


def amounts_alone(made: Object) -> Object:
    """The manifest with an amount of memory and no number of GPUs, which admission fills in."""
    [main] = made["spec"]["containers"]
    resources = {**main["resources"], "limits": {"nvidia.com/gpumem": "1000"}}
    return {**made, "spec": {**made["spec"], "containers": [{**main, "resources": resources}]}}


async def test_fits_knows_the_gate_of_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands, made = Commands(monkeypatch, await world(quota(5000))), template(claim("", share("4Gi")))
    both = [BOTH, amounts_alone(BOTH)]
    pods = [gated(user("a", template="t")), user("b", template="t"), *both]
    ended = await commands.run("fits", "-f", manifest(tmp_path, *pods, made))
    excess = "quota q allows 5000 of nvidia.com/gpumem; 4096 are used and claim default/b-gpu requests 4096"
    assert ended.output.splitlines()[:3] == [
        "Pod a fits now on n gpu-0.",
        f"Pod b does not fit: {excess}.",
        "  To change that: request less, or raise the quota of namespace default.",
    ]
    refused = ended.output.splitlines()[3:]
    assert len(refused) == len(both)
    said = 'Pod both does not fit: container "main" uses a ResourceClaim for GPUs'
    assert all(line.startswith(said) for line in refused)
