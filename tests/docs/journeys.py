"""Which files of the product run on four journeys, in the order of their first calls, as pictures.

`python -m tests.docs.journeys` writes docs/diagrams/journey-*.dot; `python -m docs.generate.diagrams` renders them.
"""

import asyncio
import base64
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import jsonpatch

import lamina
from lamina.ports.kube import CONFIG_MAPS, NODES, PODS
from tests.controller.admission_door import UNVERIFIED, review
from tests.controller.cluster import running
from tests.whole_node import kinds
from tests.whole_node.world import NODE, POLL_S, World
from tests.worlds.clocks import all_done
from tests.worlds.objects import gpu_pod, gpus

PRODUCT = f"{Path(lamina.__file__).parent}/"
PICTURES = Path(__file__).resolve().parents[2] / "docs/diagrams"
PROGRAMS = ("admission", "controller", "agent", "enforcement")
"""Packages whose files the picture names. Which files of libraries run depends on what is known already."""
STAGES = {
    "admission": "1 The API server asks admission",
    "filter": "2 kube-scheduler filters",
    "prioritize": "3 kube-scheduler prioritizes",
    "bind": "4 kube-scheduler binds",
    "prepare": "5 kubelet starts the container",
}
FAKES = ("fake", "fake_history")

Journey = Mapping[str, list[str]]
"""Files by stage, without those of the stages before."""


MAIN_FILES: Mapping[str, Mapping[str, list[str]]] = {
    "gpu": {
        "1 The agent reads the GPU": [
            "agent/run.py",
            "agent/inventory/monitor.py",
            "agent/state/gpu_health.py",
            "agent/inventory/builder.py",
        ],
        "2 It publishes what the node offers": ["agent/inventory/publisher.py"],
        "3 The controller places pods on it": [
            "controller/observation/watches.py",
            "ledger/ledger.py",
            "controller/capacity/cluster_state.py",
        ],
    },
    "claim": {
        "1 The agent offers devices": [
            "agent/resource_claims/publisher.py",
            "agent/resource_claims/dra_devices.py",
            "dra/offers.py",
            "dra/slices.py",
        ],
        "2 kube-scheduler allocates one": ["ledger/observed_claims.py", "ledger/totals.py"],
        "3 kubelet has it prepared": ["agent/kubelet/claim_plugin.py", "agent/resource_claims/preparer.py"],
    },
    "configuration": {
        "1 The ConfigMap is read": ["config_source/live.py", "configuration/config_map.py", "configuration/text.py"],
        "2 The controller follows": ["controller/capacity/cluster_state.py", "ledger/ledger.py"],
        "3 The agent follows": ["agent/run.py"],
    },
}
"""Of three journeys, the files that matter, by step."""


@contextlib.contextmanager
def recorded(*, loops: bool = False) -> Iterator[list[str]]:
    """Paths below the product's package, fakes aside. Loops that ran before, as watches and timers, count if asked."""
    files: dict[str, None] = {}
    found: list[str] = []
    others = set() if loops else asyncio.all_tasks() - {asyncio.current_task()}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event != "call" or frame.f_code.co_name == "<module>" or not path.startswith(PRODUCT):
            return
        with contextlib.suppress(RuntimeError):
            if asyncio.current_task() in others:
                return
        if Path(path).stem not in FAKES:
            files.setdefault(path.removeprefix(PRODUCT))

    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(None)
        found.extend(files)


async def follow_pod(folder: Path) -> Journey:
    """A pod with a share of memory and compute, from its manifest to its limits, on a node with two GPUs."""
    world, found = World(folder / "node"), dict[str, list[str]]()
    with world.fake_ports():
        meta = {"name": "lamina", "namespace": "lamina-system"}
        data = {"lamina.yaml": kinds.text_of("default")}
        await world.kube.create(CONFIG_MAPS, {"metadata": meta, "data": data})
        async with running(world.kube, folder, ("other", gpus(1))) as cluster:
            await world.kube.create(NODES, {"metadata": {"name": NODE, "labels": {}}, "status": {}})
            await world.agent_starts()
            await world.time_passes(POLL_S)
            pod, nodes = gpu_pod(gpumem=9000, gpucores=40), ["other", NODE]
            with recorded() as found["admission"]:
                body = review("", "pods", pod)
                async with cluster.session.post(cluster.urls["admission"], json=body, ssl=UNVERIFIED) as response:
                    answer = (await response.json())["response"]
            pod = await world.kube.create(
                PODS, jsonpatch.apply_patch(pod, json.loads(base64.b64decode(answer["patch"])))
            )
            with recorded() as found["filter"]:
                assert NODE in (await cluster.scheduler.filter(pod, *nodes))["nodenames"]
            with recorded() as found["prioritize"]:
                await cluster.scheduler.ask("prioritize", {"pod": pod, "nodenames": nodes})
            with recorded() as found["bind"]:
                assert not await cluster.scheduler.bind(pod, NODE)
            await world.time_passes(1)
            with recorded() as found["prepare"]:
                await world.kubelet_works()
            (started,) = world.kubelet.pods.values()
            assert started.runs
            await world.agent_dies()
    return _each_once(found)


async def follow(journey: str, folder: Path) -> list[list[str]]:
    """All files that run, by step, on one of the other journeys: of a node's GPUs, a claim, or a configuration."""
    world = World(folder)
    steps = {"gpu": _gpu, "claim": _claim, "configuration": _configure}[journey]
    with world.fake_ports():
        await world.kube.create(NODES, {"metadata": {"name": NODE, "labels": {}}, "status": {}})
        await world.control_starts()
        found = await steps(world)
        await world.end()
    return found


async def _gpu(world: World) -> list[list[str]]:
    with recorded(loops=True) as found:
        await world.agent_starts()
        await world.time_passes(POLL_S)
    return [found] * 3


async def _configure(world: World) -> list[list[str]]:
    await world.agent_starts()
    with recorded(loops=True) as found:
        meta = {"name": "lamina", "namespace": "lamina-system"}
        await world.kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"lamina.yaml": kinds.text_of("default")}})
        await all_done()
    return [found] * 3


async def _claim(world: World) -> list[list[str]]:
    await _configure(world)
    with recorded(loops=True) as offered:
        await world.time_passes(POLL_S)
    await world.door.comes("small claim")
    watching = asyncio.create_task(world.control.watches.run_claims())
    await all_done()
    with recorded(loops=True) as allocated:
        await world.door.allocate()
        await all_done()
    watching.cancel()
    with recorded() as prepared:
        await world.door.works()
    (claim,) = world.door.claims.values()
    assert claim.running is not None, claim
    return [offered, allocated, prepared]


def _each_once(found: Mapping[str, list[str]]) -> Journey:
    seen: set[str] = set()
    journey: dict[str, list[str]] = {}
    for stage, files in found.items():
        journey[stage] = [file for file in files if file not in seen]
        seen.update(files)
    return journey


def pictures(pod: Journey) -> Iterator[tuple[str, str]]:
    """Each journey for Graphviz, by name. Of the pod's, all files of programs."""
    programs = {
        STAGES[stage]: [file for file in files if file.split("/")[0] in PROGRAMS] for stage, files in pod.items()
    }
    yield "pod", _picture(programs)
    for name, steps in MAIN_FILES.items():
        yield name, _picture(steps)


def _picture(steps: Mapping[str, list[str]]) -> str:
    labels = ["\\l".join([title, "", *lines, ""]) for title, lines in steps.items()]
    boxes = "\n".join(f'  step{number} [label="{label}"]' for number, label in enumerate(labels))
    return (
        "// Written by `python -m tests.docs.journeys`.\n"
        "digraph journey {\n"
        '  graph [bgcolor="white", fontname="Helvetica", ranksep=0.25, pad=0.2]\n'
        '  node [shape=box, style="rounded,filled", fillcolor="#e0f2f1", color="#80cbc4", fontname="Helvetica",\n'
        '        fontsize=15, margin="0.14,0.08"]\n'
        '  edge [color="#455a64", arrowsize=0.7]\n\n'
        f"{boxes}\n"
        f"  {' -> '.join(f'step{number}' for number in range(len(labels)))}\n"
        "}\n"
    )


def main(directory: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pod = asyncio.run(follow_pod(Path(folder)))
    for name, text in pictures(pod):
        (directory / f"journey-{name}.dot").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PICTURES)
