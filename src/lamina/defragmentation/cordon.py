"""Cordoning one GPU of a node."""

from lamina.core.gpus import CORDON, Inventory
from lamina.core.gpus import cordoned as cordoned_gpus
from lamina.core.objects import read_inventory
from lamina.errors import BadInput
from lamina.ports.kube import INVENTORIES, NODES, Conflict, Kube, NotFound

_ATTEMPTS = 5


async def set_cordoned(kube: Kube, node: str, gpu: str, *, cordoned: bool) -> str:
    """Cordon the GPU, given by index or UUID, or uncordon it. Returns its UUID.

    The node's annotation is read and written back, and read again if it was changed in between, so that no concurrent
    change is lost. Raises BadInput where there is no such node or GPU.
    """
    try:
        uuid = _uuid(read_inventory(await kube.get(INVENTORIES, node)), gpu)
        for attempt in range(_ATTEMPTS):
            meta = (await kube.get(NODES, node))["metadata"]
            before = cordoned_gpus(meta.get("annotations"))
            wanted = before | {uuid} if cordoned else before - {uuid}
            annotations = {CORDON: ",".join(sorted(wanted)) or None}
            body = {"metadata": {"resourceVersion": meta["resourceVersion"], "annotations": annotations}}
            try:
                await kube.patch(NODES, node, body)
                break
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
    except NotFound as error:
        raise BadInput(f"no node {node} offers GPUs; `lamina doctor` lists the nodes that do") from error
    return uuid


def _uuid(inventory: Inventory, gpu: str) -> str:
    for candidate in inventory.gpus:
        if gpu in (candidate.uuid, str(candidate.index)):
            return candidate.uuid
    known = ", ".join(f"{candidate.index} ({candidate.uuid})" for candidate in inventory.gpus) or "none"
    raise BadInput(f"node {inventory.node} has no GPU {gpu}; its GPUs are: {known}")
