"""One question, one answer: what filter says of a node, binding does there, and `why`, `fits` and `pods` say the same.

Pods of every dialect, with amounts, percentages, whole GPUs and fractions, in namespaces with quotas of every kind, on
nodes of unlike GPUs, of which some are in use.
"""

import copy
import json
from typing import Any

import jsonpatch
import pytest

from lamina.configuration import load
from lamina.core.gpus import Gpu, Inventory, Mode
from lamina.core.objects import write_spec
from lamina.dialects import fill_defaults, parse
from lamina.ports.kube import GRANTS, PODS, Object
from lamina.report.cluster_view import ClusterObjects, ClusterView, view_of
from lamina.report.pod_templates import PodTemplate
from lamina.report.pods import pod_rows
from lamina.report.reasons import waiting_because, why_pod
from lamina.report.what_fits import FitCheck
from tests.controller.binders import Bench

CONFIG = load("{}", "configuration")


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
STATES = {
    "nothing": {},
    "a scheduler of others": {"spec": {"schedulerName": "my-scheduler"}},
    "a gate": {"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}},
    "deleted": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
}


def admitted(manifest: Object) -> Object:
    changes = [change.to_json() for change in fill_defaults(manifest, parse(manifest, CONFIG), CONFIG)]
    found: Object = jsonpatch.apply_patch(manifest, changes)
    return found


class World:
    """A controller without HTTP, and the objects that its decisions rest on."""

    def __init__(self) -> None:
        self.bench = Bench(config=CONFIG)
        self.quotas: list[Object] = []
        for each in INVENTORIES:
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
        found = self.bench.decisions.filter(self.bench.parse(obj), [each.node for each in INVENTORIES])
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
        return view_of(
            ClusterObjects(
                [{"metadata": {"name": each.node}, "spec": write_spec(each)} for each in INVENTORIES],
                (await self.bench.kube.list(GRANTS)).items,
                (await self.bench.kube.list(PODS)).items,
                self.quotas,
            )
        )


async def busy(world: World) -> None:
    """A pod of another namespace has most of one GPU, and one of each namespace with quotas has a little."""
    other = await world.make(admitted(pod(container(gpumem=30000))), "other", "holds")
    assert await world.bench.bind(other, "v") == ""
    mine = await world.make(admitted(pod(container(gpumem=1000, gpucores=10))), "team", "holds")
    assert await world.bench.bind(mine, "u") == ""


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize("hard", QUOTAS, ids=json.dumps)
async def test_filter_binding_and_views_agree(hard: list[dict[str, Any]], in_use: bool) -> None:
    world = World()
    if in_use:
        await busy(world)
    world.limit("team", hard)
    for kind, manifest in PODS_ASKED.items():
        filled = admitted(manifest)
        asked = await world.make(filled, "team", "asked")
        fitting, error = world.filter(asked)
        view = await world.view()
        [seen] = (each for each in view.pods if each["metadata"]["uid"] == asked["metadata"]["uid"])
        check_views(view, seen, manifest, fitting, error)
        await world.bench.kube.delete(PODS, "asked", namespace="team")
        for node in (each.node for each in INVENTORIES):
            if view.request(seen) is None:
                continue
            held = dict(world.bench.ledger.totals.taken(node))
            said = await world.bind(await world.make(filled, "team", f"on-{node}"), node)
            assert (said == "") == (node in fitting), (kind, hard, node, said, fitting)
            assert world.bench.ledger.totals.taken(node) == held, "nothing is held in vain"


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
    template = {**manifest, "metadata": manifest["metadata"] | {"namespace": "team"}}
    answer = FitCheck(view).check(PodTemplate("Pod p", template, 1))
    assert answer.fits == bool(fitting), (answer.lines, fitting)


@pytest.mark.parametrize("state", STATES)
async def test_pods_that_are_not_placed_are_refused_everywhere_in_the_same_words(state: str) -> None:
    world = World()
    manifest = copy.deepcopy(PODS_ASKED["half"])
    for part, changed in STATES[state].items():
        manifest[part] |= changed
    filled = admitted(manifest)
    asked = await world.make(filled, "team", "asked")
    fitting, error = world.filter(asked)
    view = await world.view()
    lines = list(why_pod(view, asked))
    assert bool(fitting) == (not error) == (state == "nothing") == (" would fit now" in lines[0])
    said = await world.bench.bind(asked, "v")
    assert (said == "") == (state == "nothing"), said
    if error:
        words = error.removeprefix("the pod ")
        assert words in lines[0] and words in said and waiting_because(view, asked) == error
        answer = FitCheck(view).check(PodTemplate("Pod p", asked, 1))
        assert not answer.fits and words in answer.lines[0]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("a scheduler of others", "p names the scheduler my-scheduler, which Lamina does not serve."),
        ("a gate", "p is held by the gate kueue.x-k8s.io/admission."),
        ("deleted", "p is being deleted."),
    ],
)
def test_why_names_what_keeps_the_pod_from_being_placed(state: str, words: str) -> None:
    manifest = copy.deepcopy(PODS_ASKED["half"])
    manifest["metadata"] |= {"namespace": "team", "uid": "u"}
    for part, changed in STATES[state].items():
        manifest[part] |= changed
    assert list(why_pod(view_of(ClusterObjects([], [], [manifest], [])), manifest)) == [words]
