"""The part of a document that a viewer may see."""

from collections.abc import Collection, Mapping

import msgspec

from lamina.operations.dashboard.document import ClusterDocument, GpuCard, GpuPart, NodeCard, PodCard
from lamina.operations.dashboard.viewers import ViewerAccess

OTHERS = "other namespaces"


def namespaces_of(document: ClusterDocument) -> set[str]:
    """The namespaces that the document names."""
    return {card.namespace for card in document.pods.values()}


def visible(document: ClusterDocument, access: ViewerAccess) -> ClusterDocument:
    """Pods of namespaces that the viewer may list, and nodes where inventories may be listed. What other pods hold of
    a GPU is one part without their names."""
    if access.nodes and access.everywhere:
        return document
    pods = {uid: _pod(card, access) for uid, card in document.pods.items() if access.sees(card.namespace)}
    if not access.nodes:
        return ClusterDocument(pods=pods)
    nodes = {name: _node(card, pods) for name, card in document.nodes.items()}
    return ClusterDocument(cluster=document.cluster, nodes=nodes, pods=pods)


def _pod(card: PodCard, access: ViewerAccess) -> PodCard:
    """The lines of `lamina why` name pods and claims of all namespaces, the sentence of a reason only the pod's own."""
    return card if access.everywhere else msgspec.structs.replace(card, why=())


def _node(card: NodeCard, pods: Mapping[str, PodCard]) -> NodeCard:
    return msgspec.structs.replace(card, notes=(), gpus=tuple(_gpu(gpu, pods) for gpu in card.gpus))


def _gpu(gpu: GpuCard, pods: Collection[str]) -> GpuCard:
    shown = tuple(part for part in gpu.parts if part.pod in pods)
    hidden = [part for part in gpu.parts if part.pod not in pods]
    if not hidden:
        return gpu
    others = GpuPart(
        pod="",
        name=OTHERS,
        memory_mib=sum(part.memory_mib for part in hidden),
        cores=sum(part.cores for part in hidden),
        whole=any(part.whole for part in hidden),
        unlimited=all(part.unlimited for part in hidden),
    )
    return msgspec.structs.replace(gpu, parts=(*shown, others))
