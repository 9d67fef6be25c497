"""`lamina demo`: the main job from beginning to end in the lab, for somebody who sees it for the first time."""

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
    keep: Annotated[bool, typer.Option("--keep", help="Leave the lab running afterwards.")] = False,
) -> None:
    """Start a lab with two GPUs, ask for ten shares, and show who got which and why the others wait."""
    from lamina.cli.terminal import console
    from lamina.lab import down, plan, up

    wanted = plan.from_options(nodes=1, gpus_per_node=2, gpu=plan.DEFAULT_GPU, port=0)
    with console.status("Starting the lab") as spinner:
        lab = up.up(NAME, wanted, config_file=None, kubeconfig=None, say=console.print, progress=spinner.update)
    try:
        console.print("The lab is up: one node with two simulated V100-SXM2-32GB.\n")
        asyncio.run(_show(lab.kubeconfig))
    finally:
        if not keep:
            down.down(NAME)
    if keep:
        console.print(f"The lab is still there: export KUBECONFIG={lab.kubeconfig}", soft_wrap=True)
        console.print(f"`lamina lab down --name {NAME}` stops it.")
    else:
        console.print("The lab is down again. `lamina demo --keep` leaves it for you to try.")


async def _show(kubeconfig: Path) -> None:
    from lamina.cli import cluster, tables
    from lamina.cli.terminal import console
    from lamina.ports.kube.client import connect

    manifest = importlib.resources.files("lamina.cli").joinpath("demo.yaml").read_text()
    console.print("This manifest goes in unchanged:\n")
    console.print(manifest.strip() + "\n", style="dim", markup=False)
    kube = await connect(kubeconfig)
    try:
        placed = await _replay(kube, manifest)
        console.print()
        tables.print_pods(console, await cluster.read(kube), "default")
    finally:
        await kube.close()
    console.print(f"\n$ kubectl exec {placed} -- nvidia-smi\n", markup=False)
    console.print(await _execute(kubeconfig, placed, "nvidia-smi"), markup=False, soft_wrap=True)


async def _replay(kube: "Kube", manifest: str) -> str:
    """Create the manifest's Deployment and wait until every pod runs or has a reason to wait. Names one that runs."""
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
                    progress.update(
                        task, completed=len(settled), description=f"{running} pods run, {waiting} wait with a reason"
                    )
                    if len(settled) == replicas:
                        return next(str(pod["metadata"]["name"]) for pod in pods if _phase(pod) == "Running")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as error:
            raise LaminaError(f"the demo's pods did not settle within {SETTLE_S:.0f} s") from error


def _phase(pod: "Object") -> str:
    return str(pod.get("status", {}).get("phase", ""))


def _is_settled(pod: "Object") -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    refused = any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)
    return _phase(pod) == "Running" or refused


async def _execute(kubeconfig: Path, pod: str, *command: str) -> str:
    from lightkube import AsyncClient, KubeConfig

    client = AsyncClient(config=KubeConfig.from_file(kubeconfig).get())
    try:
        answer = await client.exec(pod, namespace="default", command=command, stdout=True, stderr=True)
    finally:
        await client.close()
    return str(answer.stdout or "") + str(answer.stderr or "")
