"""Unexpected exceptions behind every port of the agent: it lives, says what failed, and goes on with all else."""

import contextlib
import inspect

import aiohttp
import pytest

from lamina.core.gpus import MigInstance, Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.ports.files import Files
from lamina.ports.host import Host
from lamina.ports.kube import INVENTORIES, NODES, PODS, Kube
from lamina.ports.kubelet.allocations import PodResources
from lamina.ports.mps import Mps
from lamina.ports.nvml import Nvml
from lamina.ports.time_slices import TimeSlices
from tests.agent.mig_nodes import GPU
from tests.agent.node import RESOURCE, container
from tests.agent.planted import LABEL, MinedAgent, attempt, seconds

ANNOTATION = "hami.io/node-nvidia-register"

BY_SHARES = {
    *("kube.get", "kube.list", "kube.watch", "kube.create", "kube.replace", "kube.patch"),
    *("nvml.driver_version", "nvml.gpus", "nvml.readings", "nvml.processes", "nvml.wait_event"),
    *("nvml.mig_card", "nvml.mig_instances", "nvml.set_mig_mode", "nvml.create_mig", "nvml.destroy_mig"),
    *("files.read", "files.write", "files.make_folder", "files.names", "files.remove", "files.remove_tree"),
    *("files.identity", "kubelet.holders", "kubelet.register", "kubelet.serving", "host.machine_type"),
}
BY_MPS = {"mps.start", "mps.ask", "mps.end", "nvml.set_exclusive", "files.keep_short"}
BY_TIME = {"slices.set", "host.process_cgroups", "host.process_name", "host.has_device"}
FROM_THE_START = {
    *("kube.get", "kube.list", "kube.watch", "kube.create", "kube.patch", "nvml.driver_version", "nvml.gpus"),
    *("nvml.cuda_version", "nvml.mig_instances", "nvml.wait_event", "kubelet.register"),
    *("kubelet.serving", "host.machine_type", "files.identity"),
}
ELSEWHERE = {
    "files.only_user": "is called once, before anything runs",
    "files.make_private_folder": "is called once, before anything runs",
    "files.has_file": "is called where a path is checked, before anything runs",
    "files.label": "`lamina mount-files` and the MPS service call it",
    "files.share_folder": "the MPS service calls it",
    "files.has_folder": "needs cgroups of the second version; the loop that calls it starts again",
    "nvml.limits_memory": "needs cgroups of the second version; the loop that calls it starts again",
    "nvml.limit_memory": "test_enforcers.py, with the limits of the driver",
    "nvml.work": "test_confirmed_work.py, with containers that share a GPU",
    "host.process_identity": "test_context_figures.py, with processes that the driver lists",
    "host.has_mapped": "test_confirmed_work.py, where kubelet makes no cgroups for pods",
    "nvml.close": "is called when the agent has ended",
    "host.mig_minors": "as host.has_device, for MIG devices by count",
    "kube.delete": "the agent deletes nothing",
    "kube.bind": "the agent binds nothing",
    "kube.evict": "the agent evicts nothing",
    "kube.close": "is called when the agent has ended",
}
"""Calls that no test here plants, each with the reason."""
UNCOUNTED = {"kube.watch", "kube.list", "kube.create"}
"""A collection of objects that cannot be followed, or an event that cannot be written, is only logged."""


async def scrape(mined: MinedAgent) -> str:
    """The page of metrics; empty if there is none."""
    if not mined.settings.metrics_address.exists():
        return ""
    url = mined.settings.metrics_address.read_text().strip()
    with contextlib.suppress(aiohttp.ClientError):
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await response.text()
    return ""


def grants(kind: str) -> list[ContainerGrant]:
    """A container with a MIG instance, then one with a share of the same GPU; none where devices are native."""
    if kind:
        return []
    part = Share(gpu=GPU, memory_mib=3000, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=6))
    return [container("main", part), container("main", Share(gpu=GPU, memory_mib=3000))]


async def lifetimes(mined: MinedAgent, name: str, kind: str, *, must: bool) -> None:
    """Pods come and go, one after the other. Where they `must` start, everything that was theirs goes with them."""
    for number, grant in enumerate(grants(kind) or [None]):
        pod, device = f"{name}-{number}", f"{GPU}::{number}" if kind else f"ticket-{name}-{number}"
        await mined.node.pod(pod, *([grant] if grant else []))
        if must:
            await mined.until(lambda pod=pod, device=device: attempt(mined, pod, device), f"{pod} starts")
        else:
            await attempt(mined, pod, device)
        await scrape(mined)
        mined.kubelet.held = []
        await mined.kube.delete(PODS, pod, namespace="default")
        if must:
            await mined.until(lambda: not list(mined.settings.containers.iterdir()), f"{pod} is released")


async def works(mined: MinedAgent, name: str, kind: str = "") -> None:
    """Pods start, and what people change on the node and what happens to a GPU is published."""
    await mined.until(lambda: RESOURCE in mined.kubelet.devices)
    await lifetimes(mined, name, kind, must=True)
    for cordoned in (True, False):
        note = {"hami.io/device-cordon": GPU if cordoned else None}
        await mined.kube.patch(NODES, mined.node.name, {"metadata": {"annotations": note}})
        await mined.inventory(lambda found, cordoned=cordoned: found.gpus[0].cordoned is cordoned)
    lost = mined.nvml.present.pop()
    await mined.inventory(lambda found: not found.gpus[1].healthy)
    mined.nvml.present.append(lost)
    await mined.inventory(lambda found: len(found.gpus) == 2 and all(gpu.healthy for gpu in found.gpus))
    assert "lamina_gpu_healthy" in await scrape(mined)


async def accidents(mined: MinedAgent, call: str) -> None:
    """Everything that makes the agent call its ports."""
    await mined.kube.patch(NODES, mined.node.name, {"metadata": {"annotations": {ANNOTATION: None}}})
    note = {"hami.io/device-cordon": GPU}
    await mined.kube.patch(NODES, mined.node.name, {"metadata": {"annotations": note}})
    mined.nvml.strike(GPU, 79)
    mined.kube.forget_history()
    mined.kube.disconnect()
    mined.mps.daemons.clear()
    if call == "files.read":
        for name in ("sliced", None):
            await mined.kube.patch(NODES, mined.node.name, {"metadata": {"labels": {LABEL: name}}})
            await seconds(mined, 1)
    if call == "slices.set":
        await seconds(mined, 60)
    if call in ("kubelet.register", "kubelet.serving"):
        await mined.kubelet.stop()
        await mined.kubelet.start()
    await seconds(mined, 3)
    if call == "kube.create":
        await mined.kube.delete(INVENTORIES, mined.node.name)
        await seconds(mined, 1)
    await mined.kube.patch(NODES, mined.node.name, {"metadata": {"annotations": {"hami.io/device-cordon": None}}})


def planted_lines(caplog: pytest.LogCaptureFixture) -> int:
    return sum("planted in" in record.getMessage() for record in caplog.records)


KIND_OF_NODE = dict.fromkeys(BY_SHARES, "") | dict.fromkeys(BY_MPS, "mps") | dict.fromkeys(BY_TIME, "sliced")


@pytest.mark.parametrize("call", sorted(KIND_OF_NODE))
async def test_an_exception_behind_a_port(mined: MinedAgent, call: str, caplog: pytest.LogCaptureFixture) -> None:
    kind = KIND_OF_NODE[call]
    await mined.begin(kind)
    await works(mined, "before", kind)
    mined.mines.armed = call
    await lifetimes(mined, "during", kind, must=False)
    await accidents(mined, call)
    assert mined.alive
    assert mined.mines.raised[call], "nothing has called it"
    lines = planted_lines(caplog)
    assert lines, "nothing is in the log"
    assert call in UNCOUNTED or 'lamina_objects_set_aside_total{kind="' in await scrape(mined)
    await seconds(mined, 5)
    assert planted_lines(caplog) <= lines + 5, "the log is flooded"
    mined.mines.armed = ""
    await works(mined, "after", kind)
    assert mined.alive


@pytest.mark.parametrize("call", sorted(FROM_THE_START))
async def test_an_exception_behind_a_port_from_the_start(mined: MinedAgent, call: str) -> None:
    mined.mines.armed = call
    await mined.begin()
    await seconds(mined, 2)
    assert mined.alive
    assert mined.mines.raised[call], "nothing has called it"
    mined.mines.armed = ""
    await works(mined, "after")


def test_every_call_of_every_port_is_planted() -> None:
    ports = {
        "kube": Kube,
        "nvml": Nvml,
        "mps": Mps,
        "files": Files,
        "host": Host,
        "kubelet": PodResources,
        "slices": TimeSlices,
    }
    calls = {
        f"{name}.{call}"
        for name, port in ports.items()
        for call, _ in inspect.getmembers(port, inspect.isfunction)
        if not call.startswith("_")
    }
    planted = {*KIND_OF_NODE, *FROM_THE_START}
    assert calls - planted == ELSEWHERE.keys()
    assert planted - calls == {"kubelet.register", "kubelet.serving"}
