"""Kueue queues jobs by GPU memory and time, and Lamina's scheduler places what it admits.

Real parts: kube-apiserver, kube-scheduler and the job controller of KUBE_BIN_DIR, Lamina's controller, and the Kueue
whose program KUEUE_BIN names, with the definitions in KUEUE_CRDS (`config/components/crd/bases` of its repository). No
webhook of Kueue runs, so the jobs are suspended from the start.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.control_plane import ControlPlane, NoPrograms, control_plane, free_port, programs
from bench.packing.live import running_controller
from lamina.configuration import DEFAULT
from lamina.controller import crds
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.gpus import Inventory
from lamina.core.objects import write_spec
from lamina.core.quantities import parse_quantity
from lamina.errors import Outside
from lamina.install.scheduler_config import ExtenderAccess, scheduler_config
from lamina.ports.kube import (
    CUSTOM_RESOURCE_DEFINITIONS,
    GRANTS,
    INVENTORIES,
    JOBS,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    SECRETS,
    AlreadyExists,
    Object,
    Resource,
)
from tests.worlds.objects import gpus

EXAMPLES = Path(__file__).parents[2] / "examples/kueue"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
QUEUEING = {
    "ResourceFlavor": Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False),
    "ClusterQueue": Resource("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue", namespaced=False),
    "LocalQueue": Resource("kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue"),
}
TOTALS = ("nvidia.com/gpu", "nvidia.com/total-gpumem", "nvidia.com/total-gpucores")
PATIENCE_S = 120.0


@pytest.fixture
def kueue() -> tuple[Path, Path]:
    """Kueue's program and the folder of its definitions."""
    try:
        programs()
    except NoPrograms as reason:
        pytest.skip(str(reason))
    if not os.environ.get("KUEUE_BIN") or not os.environ.get("KUEUE_CRDS"):
        pytest.skip("set KUEUE_BIN to the program of Kueue and KUEUE_CRDS to the folder of its definitions")
    return Path(os.environ["KUEUE_BIN"]), Path(os.environ["KUEUE_CRDS"])


def documents(name: str) -> list[Object]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


async def created(plane: ControlPlane, resource: Resource, obj: Object, namespace: str = "default") -> None:
    """A new kind of object is served a moment after its definition was written."""
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        try:
            await plane.kube.create(resource, obj, namespace=namespace if resource.namespaced else "")
            return
        except AlreadyExists:
            return
        except Outside:
            if asyncio.get_running_loop().time() > end:
                raise
            await asyncio.sleep(0.2)


async def observed(question: Callable[[], Any], wanted: Any, explain: Callable[[], str]) -> None:
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while (found := await question()) != wanted:
        assert asyncio.get_running_loop().time() < end, f"{found} instead of {wanted}\n{explain()}"
        await asyncio.sleep(0.5)


async def nodes_with_gpus(plane: ControlPlane) -> None:
    for name in ("node-0", "node-1"):
        amounts = {"cpu": "32", "memory": "128Gi", "pods": "100", "nvidia.com/gpu": "20"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        await created(plane, NODES, {"metadata": {"name": name}, "status": status})
        inventory = Inventory(node=name, driver="550.54.15", gpus=gpus(2, prefix=name))
        await created(plane, INVENTORIES, {"metadata": {"name": name}, "spec": write_spec(inventory)})


async def kueue_objects(plane: ControlPlane, definitions: Path) -> None:
    """Kueue's definitions, and what it puts its certificates into before it starts."""
    service = {"name": "kueue-webhook-service", "namespace": "kueue-system", "path": "/convert"}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    for path in sorted(definitions.glob("*.yaml")):
        definition = yaml.safe_load(path.read_text())
        if len(definition["spec"]["versions"]) > 1:
            definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        await created(plane, CUSTOM_RESOURCE_DEFINITIONS, definition)
    await created(plane, SECRETS, {"metadata": {"name": "kueue-webhook-server-cert"}}, "kueue-system")
    for resource, kind in ((MUTATING_WEBHOOKS, "mutating"), (VALIDATING_WEBHOOKS, "validating")):
        await created(plane, resource, {"metadata": {"name": f"kueue-{kind}-webhook-configuration"}, "webhooks": []})


def kueue_configuration(plane: ControlPlane) -> Path:
    """The example's transformations, on ports of this machine."""
    [example] = documents("kueue-config.yaml")
    certificates = {"certDir": str(plane.folder), "port": free_port()}
    path = plane.folder / "kueue.yaml"
    path.write_text(
        yaml.safe_dump(
            example
            | {
                "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
                "metrics": {"bindAddress": "0"},
                "webhook": certificates,
                "leaderElection": {"leaderElect": False},
                "integrations": {"frameworks": ["batch/job"]},
            }
        )
    )
    return path


@pytest.fixture
async def plane(kueue: tuple[Path, Path], tmp_path: Path) -> AsyncIterator[ControlPlane]:
    program, definitions = kueue
    async with control_plane(tmp_path) as made:
        for namespace in ("default", DEFAULT_NAMESPACE, "kueue-system"):
            await created(made, NAMESPACES, {"metadata": {"name": namespace}})
        await crds.apply(made.kube)
        await kueue_objects(made, definitions)
        await nodes_with_gpus(made)
        async with running_controller(made) as (url, _):
            document = scheduler_config(DEFAULT, version=made.version, access=ExtenderAccess(url, ""), weight=10)
            async with made.scheduler(document):
                with ExitStack() as others:
                    for command in _others(made, program):
                        others.enter_context(made.program(*command))
                    yield made


def _others(plane: ControlPlane, program: Path) -> Iterator[tuple[Any, ...]]:
    """The job controller and Kueue."""
    kubeconfig = f"--kubeconfig={plane.kubeconfig}"
    manager = plane.binaries["kube-apiserver"].with_name("kube-controller-manager")
    yield manager, kubeconfig, "--controllers=job-controller", "--leader-elect=false", f"--secure-port={free_port()}"
    yield program, kubeconfig, f"--config={kueue_configuration(plane)}"


async def test_kueue_admits_by_gpu_memory_and_lamina_places(plane: ControlPlane) -> None:
    for obj in documents("queues.yaml"):
        await created(plane, QUEUEING[obj["kind"]], obj)

    async def placed() -> set[str]:
        """Jobs whose pods have a node; without kubelets, deleted pods only begin to terminate."""
        pods = (await plane.kube.list(PODS, namespace="default")).items
        there = [pod for pod in pods if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")]
        return {pod["metadata"]["labels"]["job-name"] for pod in there}

    async def used() -> dict[str, float]:
        queue = await plane.kube.get(QUEUEING["ClusterQueue"], "team-a")
        [flavor] = (queue.get("status") or {}).get("flavorsUsage") or [{"resources": []}]
        totals = {each["name"]: parse_quantity(each["total"], where="total") for each in flavor["resources"]}
        return {name: float(totals[name].value) for name in TOTALS if name in totals}

    def logs() -> str:
        return plane.log("kueue") + plane.log("kube-scheduler")

    running: set[str] = set()
    for job in documents("jobs.yaml"):
        job["spec"]["template"]["spec"]["schedulerName"] = DEFAULT.schedulers.assigned
        await created(plane, JOBS, job)
        running |= {job["metadata"]["name"]} - {"another-share"}
        await observed(placed, running, logs)
    await observed(used, dict(zip(TOTALS, (3, 24000, 90), strict=True)), logs)
    assert await granted(plane) == (3, 24000, 90)
    await plane.kube.delete(JOBS, "one-share", namespace="default")
    for pod in (await plane.kube.list(PODS, namespace="default", labels="job-name=one-share")).items:
        await plane.kube.delete(PODS, pod["metadata"]["name"], namespace="default")
    await observed(placed, {"two-shares", "another-share"}, logs)


async def granted(plane: ControlPlane) -> tuple[int, int, int]:
    """Shares, MiB and percent that Lamina has granted."""
    grants = (await plane.kube.list(GRANTS, namespace="default")).items
    shares = [share for grant in grants for container in grant["spec"]["containers"] for share in container["shares"]]
    return len(shares), sum(share["memoryMiB"] for share in shares), sum(share["cores"] for share in shares)
