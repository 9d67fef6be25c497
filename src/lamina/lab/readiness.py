"""Whether a lab is ready, and if not, what it waits for, in words."""

from lamina.dialects import vocabularies
from lamina.dialects.config import Config
from lamina.lab import commands
from lamina.lab.directory import LabDirectory
from lamina.lab.informer import objects
from lamina.lab.plan import NodePlan, Plan
from lamina.ports.kube import INVENTORIES, MUTATING_WEBHOOKS, NODES, Kube, NotFound, Object
from lamina.simgpu.description import place


async def readiness(kube: Kube, directory: LabDirectory, plan: Plan, config: Config) -> str | None:
    """None when the control part answers, every node is Ready and its GPUs are on offer; else what is missing."""
    if commands.extender_url(directory) is None:
        return "the control part"
    nodes = {node["metadata"]["name"]: node for node in (await kube.list(NODES)).items}
    for planned in plan.nodes:
        if planned.name not in nodes or not objects.is_ready(nodes[planned.name]):
            return f"node {planned.name} to be Ready"
    if not (await kube.list(MUTATING_WEBHOOKS)).items:
        return "the admission webhook"
    return await _offers(kube, plan, config, nodes)


async def _offers(kube: Kube, plan: Plan, config: Config, nodes: dict[str, Object]) -> str | None:
    try:
        inventories = {item["metadata"]["name"]: item for item in (await kube.list(INVENTORIES)).items}
    except NotFound:
        return "the definition of inventories"
    tickets = [vocabulary.ticket for vocabulary in vocabularies(config)]
    for planned in plan.nodes:
        node = nodes[planned.name]
        if not _offers_gpus(planned, plan, config) or not config.selects(node["metadata"].get("labels", {})):
            continue
        offered = inventories.get(planned.name, {}).get("spec", {})
        if not offered.get("gpus"):
            return f"the inventory of node {planned.name}"
        allocatable = node["status"].get("allocatable", {})
        plain = [each["resource"] for each in offered.get("plain", ())]
        missing = next((ticket for ticket in plain or tickets if allocatable.get(ticket, "0") == "0"), None)
        if missing is not None:
            return f"{missing} of node {planned.name}"
    return None


def _offers_gpus(node: NodePlan, plan: Plan, config: Config) -> bool:
    settings = config.for_node(node.name)
    return any(settings.offers(gpu.uuid, gpu.index) for gpu in place(node.machine(plan)))
