"""Which nodes have the labels that a person asks for."""

from collections.abc import Callable, Iterable, Mapping

from lamina.ports.kube import NODES, Kube


async def labeled_nodes(
    kube: Kube, names: Iterable[str], selected: Callable[[Mapping[str, str]], bool] | None
) -> list[str]:
    """Those of the nodes whose labels are selected; all of them, without a request, where nothing is asked for."""
    if selected is None:
        return list(names)
    nodes = (await kube.list(NODES)).items
    found = {node["metadata"]["name"] for node in nodes if selected(node["metadata"].get("labels") or {})}
    return [name for name in names if name in found]
