"""What the screen of `lamina top` shows in tests: shares and GPUs, a busy cluster, and screens with them."""

import asyncio
import sys
from typing import Any

from lamina.cli.main import main
from lamina.cli.screen.frame import frame
from lamina.cli.screen.source import TopReading
from lamina.cli.screen.state import TopScreen
from lamina.ports.kube import INVENTORIES, Unreachable
from lamina.ports.kube.fake import FakeKube
from lamina.report.gpus import GpuRow
from lamina.report.pods import UnplacedPod
from lamina.report.shares import PodShare, ShareRow
from tests.operations.agent_pages import gpu_lines, serve, share_lines
from tests.worlds.clusters import cluster, container, grant, inventory, pod

AT = 1_700_000_000.0
"""22:13:20Z."""
NAMES = {
    "ascii": "embeddings-of-the-search-team-7d9f6c5b8d-x2x9f",
    "wide": "模型推理服务器" * 8,
    "combining": "e\u0301n\u0303o\u0308" * 12,
    "only marks": "\u0301" * 60,
    "right to left": "שרת מודלים خادم النماذج" * 3,
    "Devanagari": "नमूना सेवा" * 6,
    "emoji": "👩‍🔬🇩🇪❤️" * 9,
    "escape": "a\x1b[2J\x1b]0;title\x07b" * 4,
    "C1": "a\x9b2Jb\x84" * 8,
    "direction": "a\u202eb\u2066c\u200f" * 8,
    "lines": "a\r\nb\x0bc\u2028d\u0085" * 6,
    "surrogate": "a\ud800b" * 10,
    "253": "x" * 253,
}
"""Names in several scripts, with and without what a terminal takes for a command."""


def share(pod: str, **fields: Any) -> PodShare:
    known: dict[str, Any] = {
        "container": "main",
        "gpu": "GPU-0",
        "index": 0,
        "mode": "quota",
        "memory_mib": 1000,
        "limit_mib": 1000,
        "used_mib": 10,
        "peak_mib": 20,
        "compute_percent": 30,
    }
    whose: dict[str, Any] = {"namespace": "team", "node": "node-1", "model": "Tesla T4", "status": "Running"}
    whose |= {"busy_percent": 12.0, "refusals": 0}
    whose |= {name: value for name, value in fields.items() if name in PodShare._fields}
    of_share = {name: value for name, value in fields.items() if name not in PodShare._fields}
    return PodShare(pod=pod, share=ShareRow(**known | of_share), **whose)


def gpu(index: int, **fields: Any) -> GpuRow:
    known: dict[str, Any] = {
        "node": "node-1",
        "gpu": f"GPU-{index}",
        "model": "Tesla T4",
        "mode": "quota",
        "health": "healthy",
        "cordoned": False,
        "memory_mib": 15360,
        "memory_granted_mib": 1000,
        "memory_free_mib": 14360,
        "memory_used_mib": 300,
        "memory_limit_mib": 1000,
        "memory_borrowed_mib": 0,
        "compute_percent": 100,
        "compute_granted_percent": 30,
        "compute_free_percent": 70,
        "busy_percent": 12.0,
        "slots": 10,
        "slots_granted": 1,
        "slots_free": 9,
        "pods": ("team/web",),
    }
    return GpuRow(index=index, **known | fields)


def screen(*shares: PodShare, gpus: tuple[GpuRow, ...] = (), waiting: tuple[str, ...] = (), **fields: Any) -> TopScreen:
    """A screen with one reading."""
    shown = TopScreen(source="https://server (context test)", **fields)
    shown.take(TopReading(gpus, shares, tuple(UnplacedPod("team", name, "Pending") for name in waiting), AT))
    return shown


def lines(shown: TopScreen, width: int = 160, height: int = 24) -> list[str]:
    """The lines of its frame, without styles."""
    return [line.plain for line in frame(shown, width, height)]


def pods(shown: TopScreen) -> list[str]:
    """The names of the pods in the table."""
    return [row.pod for row in shown.rows]


def press(shown: TopScreen, *keys: str) -> TopScreen:
    """The screen after these keys."""
    for key in keys:
        shown.press(key)
    return shown


def busy_cluster() -> TopReading:
    """Four nodes with two GPUs each: pods whose names differ at their ends, some that wait, a sick GPU, a cordoned
    one, and a node without figures."""
    model = "NVIDIA A100-SXM4-40GB"
    gpus = tuple(
        gpu(
            place % 2,
            gpu=f"GPU-8f6d2c1e-0000-0000-0000-00000000000{place}",
            node=f"gpu-pool-a-{place // 2}",
            model=model,
            memory_mib=40960,
            memory_granted_mib=8192 * (place % 5),
            memory_limit_mib=8192 * (place % 5),
            memory_used_mib=None if place == 7 else 5000 * (place % 5),
            busy_percent=None if place == 7 else 13.0 * place,
            health="XID 79: GPU has fallen off the bus" if place == 5 else "healthy",
            cordoned=place == 3,
        )
        for place in range(8)
    )
    shares = tuple(
        share(
            f"embeddings-of-the-search-team-7d9f6c5b8d-{name}x{place:02}z",
            namespace="team-b" if place % 3 else "search",
            node=gpus[place % 8].node,
            gpu=gpus[place % 8].gpu,
            index=place % 2,
            model=model,
            limit_mib=8192,
            memory_mib=8192,
            used_mib=None if place % 8 == 7 else 500 * place,
            peak_mib=600 * place,
            busy_percent=None if place % 8 == 7 else float(3 * place),
            refusals=2 if place == 9 else 0,
        )
        for place, name in enumerate("abcdefghjkmnpqrs")
    )
    waiting = (UnplacedPod("team-b", "batch-of-the-night-0", "Pending"), UnplacedPod("search", "notebook", "Pending"))
    return TopReading(gpus, shares, waiting, AT, 1, ["No usage data from gpu-pool-a-3: no answer"])


async def running() -> FakeKube:
    """A cluster with one pod that uses part of a GPU."""
    runs = pod("runs", container(gpu=1, gpumem=1000), node="n")
    kube = await cluster(inventory("n"), runs, grant(runs, "n", 1000))
    used = share_lines("n", "runs", "GPU-n-0", data=100, context=303, limit=1000, peak=900, refusals=2, busy=40)
    serve(kube, "n", gpu_lines("n", "GPU-n-0", 500, 41) + used)
    return kube


def _program(after_the_first: str) -> None:
    """`lamina` with that cluster, which `goes`, `hangs` or has a `fault` once it was read, or else `stays`."""
    from lamina.ports.kube import client

    async def connect(*_: object, **__: object) -> FakeKube:
        kube, readings = await running(), 0
        listed = kube.list

        async def again(resource: Any, **chosen: Any) -> Any:
            nonlocal readings
            readings += resource == INVENTORIES
            if readings > 1:
                if after_the_first == "goes":
                    raise Unreachable("the Kubernetes server does not answer")
                if after_the_first == "hangs":
                    await asyncio.Event().wait()
                if after_the_first == "fault":
                    print("a login program wants a word", file=sys.stderr)
                    raise RuntimeError("a fault of the program")
            return await listed(resource, **chosen)

        kube.list = again  # type: ignore[method-assign]
        return kube

    client.connect = connect  # type: ignore[assignment]
    client.cluster_name = lambda *_: "https://server (context test)"
    main()


if __name__ == "__main__":
    _program(sys.argv.pop(1))
