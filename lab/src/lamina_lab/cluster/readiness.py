"""Whether a lab is ready and, if not, what it waits for."""

import aiohttp

from lamina.configuration import Config
from lamina.dialects import resource_names
from lamina.ports.kube import INVENTORIES, MUTATING_WEBHOOKS, NODES, Kube, NotFound, Object
from lamina_lab.cluster import commands
from lamina_lab.cluster.plan import LabPlan, NodePlan
from lamina_lab.host.directory import LabDirectory
from lamina_lab.kubernetes import objects
from lamina_lab.simgpu.description import place

_PROBE = aiohttp.ClientTimeout(total=2)


async def readiness(kube: Kube, directory: LabDirectory, plan: LabPlan, config: Config) -> str | None:
    """What the lab waits for; None once controller and admission answer, and each node is Ready and has its GPUs."""
    if commands.extender_url(directory) is None:
        return "the controller"
    nodes = {node["metadata"]["name"]: node for node in (await kube.list(NODES)).items}
    for planned in plan.nodes:
        if planned.name not in nodes or not objects.is_ready(nodes[planned.name]):
            return f"node {planned.name} to be Ready"
    if not (await kube.list(MUTATING_WEBHOOKS)).items or not await _admission_is_ready(directory):
        return "the admission webhook"
    return await _missing_gpus(kube, plan, config, nodes)


async def _admission_is_ready(directory: LabDirectory) -> bool:
    """In a cluster, a Service leads to admission only then."""
    url = commands.admission_probe_url(directory)
    try:
        async with aiohttp.ClientSession(timeout=_PROBE) as session, session.get(url or "") as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


async def _missing_gpus(kube: Kube, plan: LabPlan, config: Config, nodes: dict[str, Object]) -> str | None:
    try:
        inventories = {item["metadata"]["name"]: item for item in (await kube.list(INVENTORIES)).items}
    except NotFound:
        return "the CustomResourceDefinition of inventories"
    tickets = [names.ticket for names in resource_names(config)]
    for planned in plan.nodes:
        node = nodes[planned.name]
        if not _advertises_gpus(planned, plan, config) or not config.selects(node["metadata"].get("labels", {})):
            continue
        inventory = inventories.get(planned.name, {}).get("spec", {})
        if not inventory.get("gpus"):
            return f"the inventory of node {planned.name}"
        allocatable = node["status"].get("allocatable", {})
        native = [device["resource"] for device in inventory.get("nativeResources", ())]
        missing = next((name for name in native or tickets if allocatable.get(name, "0") == "0"), None)
        if missing is not None:
            return f"{missing} on node {planned.name}"
    return None


def _advertises_gpus(node: NodePlan, plan: LabPlan, config: Config) -> bool:
    settings = config.for_node(node.name)
    return any(settings.offers(gpu.uuid, gpu.index) for gpu in place(node.machine(plan)))
