"""`lamina doctor`: does a cluster have what Lamina needs, and if not, how is that mended?"""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lamina.cli.view import Kubeconfig

if TYPE_CHECKING:
    from lamina.cli.finding import Finding
    from lamina.dialects.config import Config
    from lamina.ports.kube import Kube, Object

_TRIAL = "lamina-doctor"


def doctor(kubeconfig: Kubeconfig = None) -> None:
    """Check driver, runtime, Kubernetes, webhook, agents, scheduler and other plugins; say how to mend each."""
    from rich.table import Table

    from lamina.cli.finding import State
    from lamina.cli.terminal import console, print_table

    found = asyncio.run(_examine(kubeconfig))
    table = Table("CHECK", "STATE", "FOUND", box=None, pad_edge=False)
    for one in found:
        table.add_row(one.what, one.state.value, one.found)
    print_table(console, table)
    for one in found:
        if one.mend:
            console.print(f"{one.what}: {one.mend}.", soft_wrap=True, markup=False, highlight=False)
    if any(one.state is State.FAILED for one in found):
        raise typer.Exit(1)


async def _examine(kubeconfig: Path | None) -> "list[Finding]":
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        return await examine(kube)
    finally:
        await kube.close()


async def examine(kube: "Kube") -> "list[Finding]":
    """All findings about a cluster. Raises BadInput where Lamina is not installed, Outside."""
    from lamina.cli import cluster
    from lamina.cli.examining import findings
    from lamina.ports.kube import MUTATING_WEBHOOKS, NODES

    read = await cluster.read(kube)
    nodes, webhooks = (await kube.list(NODES)).items, (await kube.list(MUTATING_WEBHOOKS)).items
    return [await webhook(kube, read.config, webhooks), *findings(read, nodes, webhooks, datetime.now(UTC))]


async def webhook(kube: "Kube", config: "Config", registered: "list[Object]") -> "Finding":
    """Whether admission answers: a pod that it must refuse is created, and removed at once if it was not refused."""
    from lamina.cli.finding import Finding, State
    from lamina.control.webhook_configuration import NAME
    from lamina.errors import Outside
    from lamina.ports.kube import PODS, AlreadyExists

    mend = "see the log of `lamina control`, and whether the API server reaches its Service"
    if not config.enabled:
        return Finding("webhook", State.WARNING, "the configuration says enabled: false", "set enabled: true to begin")
    if not any(one["metadata"]["name"] == NAME and one.get("webhooks") for one in registered):
        return Finding("webhook", State.FAILED, "it is not registered", mend)
    try:
        await kube.create(PODS, _trial(config), namespace="default")
    except AlreadyExists:
        pass  # left behind by a doctor that was cut off
    except Outside as error:
        if config.hami.resource_memory_percentage_name in str(error):
            return Finding("webhook", State.OK, "it answers, and refuses nonsense")
        named = re.search(r'failed calling webhook "([^"]+)"', str(error))
        if named and not named[1].endswith(f".{NAME}"):
            mend = f"{named[1]} is not Lamina's; mend or remove what it belongs to"
        return Finding("webhook", State.FAILED, f"the API server says: {error}", mend)
    await kube.delete(PODS, _TRIAL, namespace="default", grace_s=0)
    return Finding("webhook", State.FAILED, "a pod with nonsense was admitted", mend)


def _trial(config: "Config") -> "Object":
    """A pod that asks 500 % of a GPU's memory, and that no scheduler would place if it were admitted."""
    limits = {config.hami.resource_count_name: "1", config.hami.resource_memory_percentage_name: "500"}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {
        "metadata": {"name": _TRIAL},
        "spec": {"containers": [container], "schedulingGates": [{"name": "lamina.dev/doctor"}]},
    }
