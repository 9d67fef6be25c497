"""A controller without HTTP and the views of the same cluster, so that their answers about one pod can be compared."""

import copy
from collections.abc import Sequence
from typing import Any

import jsonpatch
import msgspec

from lamina.configuration import load
from lamina.controller.scheduling.scheduler import FilterResult
from lamina.core.gpus import Gpu, Inventory, Mode
from lamina.core.inventory_status import HeldRoom
from lamina.core.ledger import Taken
from lamina.core.objects import write_spec
from lamina.dialects import fill_defaults, parse
from lamina.dialects.groups import GROUP_LABEL, SCHEDULER_PLUGINS, GroupName
from lamina.dra.names import DRIVER
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit
from lamina.operations.dashboard.view import document_of
from lamina.ports.kube import GRANTS, PLUGIN_POD_GROUPS, PODS, Object
from lamina.report.cluster_reader import ClusterObjects, view_of
from lamina.report.cluster_use import ClusterUse
from lamina.report.cluster_view import ClusterView
from lamina.report.gpus import HEALTHY, IDLE, gpu_rows
from lamina.report.pod_claims import NO_CLAIMS
from lamina.report.pod_templates import PodTemplate
from lamina.report.pods import pod_rows
from lamina.report.reasons import waiting_because, why_pod
from lamina.report.waiting_groups import read_waiting
from lamina.report.what_fits import FitCheck
from tests.controller.binders import Bench

CONFIG = load("{}", "configuration")
GROUP = GroupName(SCHEDULER_PLUGINS, "team", "g")


def card(node: str, index: int, model: str, memory: int, **rest: Any) -> Gpu:
    return Gpu(uuid=f"{node}-GPU-{index}", index=index, model=model, memory_mib=memory, capacity_mib=memory, **rest)


INVENTORIES = [
    Inventory(node="v", driver="1", gpus=tuple(card("v", i, "Tesla V100", 32768) for i in range(2))),
    Inventory(node="u", driver="1", gpus=(card("u", 0, "A100", 40960), card("u", 1, "Tesla T4", 15360))),
    Inventory(
        node="m",
        driver="1",
        gpus=(card("m", 0, "NVIDIA A100", 40960, mig_capable=True, mig_card="A100-40GB", modes=(Mode.MIG,)),),
    ),
    Inventory(node="w", driver="1", gpus=(card("w", 0, "Tesla T4", 15360),)),
]

QUOTAS: list[list[dict[str, Any]]] = [
    [],
    [{"limits.nvidia.com/gpumem": 10000}],
    [{"limits.nvidia.com/gpumem": 5000}],
    [{"limits.nvidia.com/gpumem": 0}],
    [{"limits.nvidia.com/gpumem": 16000}],
    [{"limits.nvidia.com/gpumem": 100000}],
    [{"limits.nvidia.com/gpucores": 50}],
    [{"limits.nvidia.com/gpucores": 0}],
    [{"limits.nvidia.com/gpucores": 100}],
    [{"limits.nvidia.com/gpumem": 20000, "limits.nvidia.com/gpucores": 60}],
    [{"limits.nvidia.com/gpumem": 40000}, {"limits.nvidia.com/gpumem": 9000}, {"limits.nvidia.com/gpucores": 120}],
    [{"limits.nvidia.com/gpumem": "nonsense"}],
    [{"requests.nvidia.com/gpu": 1}, {"limits.cpu": 1}],
]


def container(name: str = "a", **limits: Any) -> Object:
    named = {key if "/" in key else f"nvidia.com/{key.replace('_', '-')}": str(each) for key, each in limits.items()}
    return {"name": name, "resources": {"limits": named}}


def pod(*containers: Object, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": "p", "annotations": annotations or {}}, "spec": {"containers": [*containers], **spec}}


def volcano(**limits: Any) -> Object:
    return container(**{f"volcano.sh/{key.replace('_', '-')}": each for key, each in limits.items()})


KAI = {"schedulerName": "kai-scheduler"}
PODS_ASKED: dict[str, Object] = {
    "amount": pod(container(gpumem=8000)),
    "small amount": pod(container(gpumem=1000, gpucores=20)),
    "large amount": pod(container(gpumem=30000)),
    "half": pod(container(gpu=1, gpumem_percentage=50)),
    "half with cores": pod(container(gpu=1, gpumem_percentage=50, gpucores=50)),
    "whole": pod(container(gpu=1)),
    "two wholes": pod(container(gpu=2)),
    "two halves on two": pod(container(gpu=2, gpumem_percentage=50)),
    "two amounts on two": pod(container(gpu=2, gpumem=5000)),
    "fraction": pod(container(gpu="0.5")),
    "small fraction": pod(container(gpu="0.1")),
    "volcano half": pod(volcano(vgpu_number=1, vgpu_memory_percentage=50)),
    "volcano amount": pod(volcano(vgpu_number=1, vgpu_memory=4000, vgpu_cores=30)),
    "kai half": pod(container(), annotations={"gpu-fraction": "0.5"}, **KAI),
    "kai amount": pod(container(), annotations={"gpu-memory": "4000"}, **KAI),
    "kai two": pod(container(), annotations={"gpu-fraction": "0.4", "gpu-fraction-num-devices": "2"}, **KAI),
    "two containers": pod(container(gpu=1, gpumem_percentage=40), container("b", gpu=1, gpumem_percentage=40)),
    "mixed containers": pod(container(gpumem=3000), container("b", gpu=1, gpumem_percentage=30)),
    "init and main": pod(container(gpumem=4000), initContainers=[container("i", gpu=1, gpumem_percentage=60)]),
    "large init": pod(container(gpumem=1000), initContainers=[container("i", gpumem=9500)]),
    "sidecar": pod(container(gpumem=4000), initContainers=[container("s", gpumem=4000) | {"restartPolicy": "Always"}]),
    "of a type": pod(container(gpu=1, gpumem_percentage=50), annotations={"nvidia.com/use-gputype": "T4"}),
    "instance": pod(container(gpumem=1000), annotations={"nvidia.com/vgpu-mode": "mig"}),
    "no GPU": pod(container()),
}


def in_group(manifest: Object) -> Object:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), GROUP_LABEL: "g"}}}


def admitted(manifest: Object) -> Object:
    changes = [change.to_json() for change in fill_defaults(manifest, parse(manifest, CONFIG), CONFIG)]
    found: Object = jsonpatch.apply_patch(manifest, changes)
    return found


class AskedCluster:
    """A controller without HTTP, and the objects that its decisions rest on."""

    def __init__(self, inventories: Sequence[Inventory] = INVENTORIES) -> None:
        self.bench = Bench(config=CONFIG)
        self.inventories = inventories
        self.quotas: list[Object] = []
        self.holds: dict[str, list[HeldRoom]] = {}
        """By node."""
        self.claims: list[Object] = []
        for each in inventories:
            self.bench.ledger.observe_inventory(each)

    def limit(self, namespace: str, hard: list[dict[str, Any]]) -> None:
        for index, each in enumerate(hard):
            quota = {"metadata": {"name": f"q{index}", "namespace": namespace}, "spec": {"hard": each}}
            self.quotas.append(quota)
            self.bench.quotas.observe(quota)

    async def make(self, manifest: Object, namespace: str, name: str) -> Object:
        made = copy.deepcopy(manifest)
        made["metadata"] |= {"namespace": namespace, "name": name}
        return await self.bench.kube.create(PODS, made)

    def filter(self, obj: Object) -> tuple[set[str], str]:
        found = self.bench.scheduler.filter(self.bench.parse(obj), [each.node for each in self.inventories])
        return set(found.fitting), found.error

    async def bind(self, obj: Object, node: str) -> str:
        """Bind, and take the pod away again."""
        error = await self.bench.bind(obj, node)
        for record in self.bench.ledger.grants_of(obj["metadata"]["uid"]):
            await self.bench.kube.delete(GRANTS, record.name, namespace=record.namespace)
        await self.bench.kube.delete(PODS, obj["metadata"]["name"], namespace=obj["metadata"]["namespace"])
        self.bench.ledger.remove_pod(obj["metadata"]["uid"], self.bench.context.now())
        return error

    async def view(self) -> ClusterView:
        pods = (await self.bench.kube.list(PODS)).items
        return view_of(
            ClusterObjects(
                [self._inventory(each) for each in self.inventories],
                (await self.bench.kube.list(GRANTS)).items,
                pods,
                self.quotas,
                claims=NO_CLAIMS._replace(claims=self.claims),
                needed=await read_waiting(self.bench.kube, pods),
            )
        )

    async def members(self, kinds: Sequence[str], needed: int) -> list[Object]:
        """A group with pods of these kinds that wait."""
        group = {"metadata": {"name": "g", "namespace": "team"}, "spec": {"minMember": needed}}
        await self.bench.kube.create(PLUGIN_POD_GROUPS, group)
        return [
            await self.make(in_group(admitted(PODS_ASKED[kind])), "team", f"member-{number}")
            for number, kind in enumerate(kinds)
        ]

    async def restrict(self, obj: Object) -> FilterResult:
        """What filter says of a member of the group, of which nothing stays held."""
        pod, gangs = self.bench.parse(obj), self.bench.coordinator()
        found = self.bench.scheduler.filter(pod, [each.node for each in self.inventories])
        result = await gangs.restrict(pod, found)
        for member in (await self.bench.kube.list(PODS)).items:
            self.bench.ledger.release(member["metadata"]["uid"], Why.PLAN)
        return result

    def _inventory(self, of: Inventory) -> Object:
        holds = msgspec.to_builtins(self.holds.get(of.node, []))
        return {"metadata": {"name": of.node}, "spec": write_spec(of), "status": {"holds": holds}}

    def allocate(self, of: Inventory, gpu: Gpu) -> None:
        """kube-scheduler gives the GPU to a ResourceClaim, which the agent of the node has not prepared yet."""
        name = f"claim-{len(self.claims)}"
        result = {"driver": DRIVER, "pool": of.node, "device": f"gpu-{gpu.number}", "request": "r"}
        claim = {
            "metadata": {"namespace": "other", "name": name, "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": []}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
        self.claims.append(claim)
        observed = self.bench.cluster_state.claims
        observed.observe(claim)
        self.bench.ledger.observe_inventory(observed.marked(of), allocated=observed.allocated_on(of))

    async def hold(self, name: str, node: str, gpu: str, memory_mib: int) -> None:
        """Keep room for a pod that waits, as for a member of a group."""
        waits = await self.make(pod(container()), "other", name)
        uid = waits["metadata"]["uid"]
        taken = {gpu: Taken(1, memory_mib)}
        try:
            self.bench.ledger.hold(Hold(uid, "other", name, node, taken, float("inf"), Why.GRANT))
        except DoesNotFit:
            return
        held = HeldRoom(namespace="other", pod=name, pod_uid=uid, gpu=gpu, memory_mib=memory_mib)
        self.holds.setdefault(node, []).append(held)


async def check_answers(world: AskedCluster, kind: str) -> None:
    """What filter says of a pod of this kind, binding does on each node, and every view shows."""
    manifest = PODS_ASKED[kind]
    filled = admitted(manifest)
    asked = await world.make(filled, "team", "asked")
    fitting, error = world.filter(asked)
    view = await world.view()
    [seen] = (each for each in view.pods if each["metadata"]["uid"] == asked["metadata"]["uid"])
    check_rows(view)
    check_views(view, seen, manifest, fitting, error)
    await world.bench.kube.delete(PODS, "asked", namespace="team")
    for node in (each.node for each in world.inventories):
        if view.request(seen) is None:
            continue
        held = dict(world.bench.ledger.totals.taken(node))
        said = await world.bind(await world.make(filled, "team", f"on-{node}"), node)
        assert (said == "") == (node in fitting), (kind, world.quotas, node, said, fitting)
        assert world.bench.ledger.totals.taken(node) == held, "nothing is held in vain"


def check_rows(view: ClusterView) -> None:
    """The page says of GPUs and of the shares of pods what the rows of `gpus` and `pods` say."""
    document = document_of(view, {})
    cards = {gpu.uuid: gpu for node in document.nodes.values() for gpu in node.gpus}
    rows = gpu_rows(view, ClusterUse())
    assert {row.gpu for row in rows} == cards.keys()
    for row in rows:
        gpu = cards[row.gpu]
        assert (row.mode, row.memory_mib) == (gpu.mode or gpu.native or IDLE, gpu.capacity_mib)
        assert row.memory_granted_mib in (gpu.taken_mib, None), row
        assert (row.health == HEALTHY, row.cordoned, row.slots) == (gpu.healthy, gpu.cordoned, gpu.slots)
    shown = {(each.namespace, each.name): each for each in document.pods.values()}
    for row in pod_rows(view, None):
        card = shown[row.namespace, row.pod]
        shares = [(each.container, each.gpu, each.index, each.mode, each.memory_mib, each.mig) for each in row.shares]
        assert shares == [
            (each.container, each.gpu, each.index, each.mode, each.memory_mib, each.mig) for each in card.shares
        ]
        assert [each.limit_mib for each in row.shares] == [each.most_mib for each in card.shares]
        assert (row.node, row.reason) == (card.node, card.reason)


def check_views(view: ClusterView, seen: Object, manifest: Object, fitting: set[str], error: str) -> None:
    explanation, lines = view.explain(seen), list(why_pod(view, seen))
    if explanation is None:
        assert "requests no GPU" in lines[0]
        return
    assert set(explanation.fitting) == (set() if error else fitting), lines
    assert (" would fit now" in lines[0]) == bool(fitting), lines
    waiting = waiting_because(view, seen)
    [row] = [row for row in pod_rows(view, "team") if row.pod == "asked"]
    assert row.reason == waiting == (waiting if fitting else error or explanation.summary)
    card = document_of(view, {}).pods[seen["metadata"]["uid"]]
    assert card.reason == waiting and list(card.why) == [line.strip() for line in lines]
    template = {**manifest, "metadata": manifest["metadata"] | {"namespace": "team"}}
    answer = FitCheck(view).check(PodTemplate("Pod p", template, 1))
    assert answer.fits == bool(fitting), (answer.lines, fitting)


async def check_group(world: AskedCluster, kinds: Sequence[str], needed: int) -> None:
    """What filter says of each member of a group, binding does, and every view shows."""
    members = await world.members(kinds, needed)
    view = await world.view()
    seen = {pod["metadata"]["name"]: pod for pod in view.pods}
    check_rows(view)
    complete = None
    for member in members:
        name, alone = member["metadata"]["name"], world.filter(member)
        result = await world.restrict(member)
        if not alone[0] or view.request(seen[name]) is None:
            continue
        lines, waiting = list(why_pod(view, seen[name])), waiting_because(view, seen[name])
        [row] = [row for row in pod_rows(view, "team") if row.pod == name]
        card = document_of(view, {}).pods[member["metadata"]["uid"]]
        assert (row.reason, card.reason) == (waiting, waiting)
        assert list(card.why) == [line.strip() for line in lines]
        if result.fitting:
            assert " would fit now with the rest of its group" in lines[0], (lines, result)
            complete = complete is not False
        else:
            assert waiting == result.summary and lines[0] == f"{name} is pending: {result.summary}.", (lines, result)
            for node in alone[0]:
                said = await world.bench.coordinator().wait(world.bench.args(member, node))
                assert said, (kinds, needed, node, result)
            complete = False
    if complete is not None and len(kinds) == needed:
        await check_fits(world, kinds, needed, complete)


async def check_fits(world: AskedCluster, kinds: Sequence[str], needed: int, complete: bool) -> None:
    """The same group as a manifest, before any of its pods exist."""
    for pod_ in (await world.bench.kube.list(PODS)).items:
        if pod_["metadata"]["name"].startswith("member-"):
            await world.bench.kube.delete(PODS, pod_["metadata"]["name"], namespace="team")
    templates = [
        PodTemplate(f"Pod {number}", {**asked, "metadata": asked["metadata"] | {"namespace": "team"}}, 1)
        for number, asked in enumerate(in_group(PODS_ASKED[kind]) for kind in kinds)
    ]
    answers = list(FitCheck(await world.view()).check_all(templates, {GROUP: needed}))
    assert [answer.fits for answer in answers] == [complete], (kinds, answers)
