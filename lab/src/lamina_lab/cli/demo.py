"""`lamina demo`: the main use case from start to end in a lab, for people who are new to Lamina."""

import asyncio
import importlib.resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamina.errors import LaminaError

if TYPE_CHECKING:
    from lamina.ports.kube import Kube, Object

NAME = "demo"
SETTLE_S = 60.0
_POLL_S = 0.1


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep the lab running afterwards.")] = False,
) -> None:
    """Start a lab with two GPUs, request ten shares, and show where they run and why the others wait."""
    from lamina.cli.terminal import console
    from lamina_lab.cluster import down, plan, up

    lab_plan = plan.from_options(nodes=1, gpus_per_node=2, gpu=plan.DEFAULT_GPU, port=0)
    with console.status("Starting the lab") as spinner:
        lab = up.up(NAME, lab_plan, config_file=None, kubeconfig=None, say=console.print, progress=spinner.update)
    try:
        console.print("The lab is running: one node with two simulated V100-SXM2-32GB GPUs.\n")
        asyncio.run(_show(lab.kubeconfig))
    finally:
        if not keep:
            down.down(NAME)
    for line in _last_words(lab.kubeconfig if keep else None):
        console.print(line, markup=False, soft_wrap=True)


def _last_words(kubeconfig: Path | None) -> list[str]:
    """What to do next, with the kubeconfig of the lab if it keeps running."""
    watch = f"To watch its GPUs and pods in a browser: lamina lab dashboard --name {NAME}"
    stop = f"To stop it: lamina lab down --name {NAME}"
    if kubeconfig is None:
        return ["The lab is stopped. To keep it running: lamina demo --keep", watch]
    return [f"The lab keeps running. To use it: export KUBECONFIG={kubeconfig}", stop, watch]


async def _show(kubeconfig: Path) -> None:
    from lamina.cli import tables
    from lamina.cli.terminal import console
    from lamina.ports.kube.client import connect
    from lamina.report import cluster_reader

    manifest = importlib.resources.files("lamina_lab.cli").joinpath("demo.yaml").read_text()
    console.print("The demo applies this manifest:\n")
    console.print(manifest.strip() + "\n", style="dim", markup=False)
    kube = await connect(kubeconfig)
    try:
        placed = await _replay(kube, manifest)
        console.print()
        tables.print_pods(console, await cluster_reader.read(kube), "default")
    finally:
        await kube.close()
    console.print(f"\n$ kubectl exec {placed} -- nvidia-smi\n", markup=False)
    console.print(await _execute(kubeconfig, placed, "nvidia-smi"), markup=False, soft_wrap=True)


async def _replay(kube: "Kube", manifest: str) -> str:
    """Create the manifest's Deployment and wait until each pod runs or is unschedulable. Return a running one."""
    import yaml
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from lamina.cli.terminal import console
    from lamina.ports.kube import DEPLOYMENTS, PODS

    deployment = yaml.safe_load(manifest)
    await kube.create(DEPLOYMENTS, deployment, namespace="default")
    replicas = deployment["spec"]["replicas"]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Placing pods", total=replicas)
        try:
            async with asyncio.timeout(SETTLE_S):
                while True:
                    pods = (await kube.list(PODS, namespace="default")).items
                    settled = [pod for pod in pods if _is_settled(pod)]
                    running = sum(_phase(pod) == "Running" for pod in pods)
                    waiting = len(settled) - running
                    progress.update(task, completed=len(settled), description=f"{running} running, {waiting} pending")
                    if len(settled) == replicas:
                        return next(str(pod["metadata"]["name"]) for pod in pods if _phase(pod) == "Running")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as error:
            raise LaminaError(f"not all of the demo's pods were handled within {SETTLE_S:.0f} s") from error


def _phase(pod: "Object") -> str:
    return str(pod.get("status", {}).get("phase", ""))


def _is_settled(pod: "Object") -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    unschedulable = any(
        condition["type"] == "PodScheduled" and condition["status"] == "False" for condition in conditions
    )
    return _phase(pod) == "Running" or unschedulable


async def _execute(kubeconfig: Path, pod: str, *command: str) -> str:
    from lightkube import AsyncClient, KubeConfig

    client = AsyncClient(config=KubeConfig.from_file(kubeconfig).get())
    try:
        result = await client.exec(pod, namespace="default", command=command, stdout=True, stderr=True)
    finally:
        await client.close()
    return str(result.stdout or "") + str(result.stderr or "")
