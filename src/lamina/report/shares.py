"""What pods hold of GPUs, by grants, by claims, or as devices that kubelet allocated, and what they use of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from lamina.core.gpus import NATIVE_MODES, Inventory, Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.pod_status import is_over
from lamina.dialects.containers import read_containers
from lamina.ports.kube import Object
from lamina.report import compute
from lamina.report.claim_shares import requests_by_claims
from lamina.report.cluster_use import ClusterUse, ShareFigures
from lamina.report.cluster_view import ClusterView

CREATING = "ContainerCreating"
Figures = Callable[[str, str], ShareFigures | None]
"""What is known of a container, or of a request of a claim, and a GPU."""


class ShareRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """Part of one GPU that a container holds. Memory is in MiB, compute in percent of the GPU's time."""

    container: str
    """For a claim, `<claim>/<request>`."""
    gpu: str
    index: int | None
    """None if its node does not list the GPU."""
    mode: str
    memory_mib: int
    limit_mib: int
    """How much it may hold while the GPU has room; otherwise as `memory_mib`."""
    compute_percent: int | None
    """None for a whole GPU; 0 where compute is shared without a limit."""
    compute_meaning: str = ""
    """What the percentage means, such as `cap` or `lends`; see `lamina.report.compute`."""
    mig: str = ""
    """The profile of its MIG device, and where it starts if it was made for the pod."""
    init: bool = False
    """Of an init container that ends before the others start; on each GPU, the larger of both counts."""
    used_mib: int | None = None
    """None where it is not known."""
    peak_mib: int | None = None

    @property
    def compute(self) -> str:
        """Its compute in words."""
        return compute.in_words(self.compute_percent, self.compute_meaning)


class PodShare(NamedTuple):
    """A share with whose it is, on which model, and what its agent says of its time and refusals."""

    namespace: str
    pod: str
    node: str
    model: str
    share: ShareRow
    busy_percent: float | None = None
    refusals: int | None = None
    status: str = ""
    """That of the pod."""


def all_shares(cluster: ClusterView, use: ClusterUse) -> list[PodShare]:
    """The shares of all pods that are on a node and have not ended, by node and pod."""
    models = {uuid: load.model for uuid, load in use.gpus.items()}
    models |= {gpu.uuid: gpu.model for inventory in cluster.inventories.values() for gpu in inventory.gpus}
    found = [
        PodShare(
            pod["metadata"]["namespace"],
            pod["metadata"]["name"],
            pod["spec"]["nodeName"],
            models.get(share.gpu, ""),
            share,
            figures.busy_percent if figures else None,
            figures.refusals if figures else None,
            status_of(pod),
        )
        for pod in cluster.pods
        for share, figures in shares_with_figures(pod, cluster, use)
    ]
    return sorted(found, key=lambda each: (each.node, each[:2], each.share.container, each.share.index or 0))


def status_of(pod: Object) -> str:
    """Its phase, with the name that kubectl has for a pod on a node whose containers do not run yet."""
    phase = str((pod.get("status") or {}).get("phase", "Unknown"))
    return CREATING if phase == "Pending" and pod["spec"].get("nodeName") else phase


def held_shares(pod: Object, cluster: ClusterView, use: ClusterUse) -> tuple[ShareRow, ...]:
    """The shares of a pod; none before it is on a node and after it has ended."""
    return tuple(share for share, _ in shares_with_figures(pod, cluster, use))


def shares_with_figures(
    pod: Object, cluster: ClusterView, use: ClusterUse
) -> Iterator[tuple[ShareRow, ShareFigures | None]]:
    """The same with what its agent says of each; None where it says nothing."""
    meta, node = pod["metadata"], pod["spec"].get("nodeName")
    if not node or is_over(pod):
        return
    inventory, grant = cluster.inventories.get(node), cluster.grants.get(meta["uid"])
    claimed = requests_by_claims(pod, cluster.inventories)

    def of_container(container: str, gpu: str) -> ShareFigures | None:
        return use.share((meta["namespace"], meta["name"], container), gpu)

    def of_request(name: str, gpu: str) -> ShareFigures | None:
        claim, _, request = name.partition("/")
        return use.claim((meta["namespace"], claim, request), gpu)

    if grant:
        yield from _granted(grant.containers, inventory, of_container)
    yield from _granted(claimed, inventory, of_request)
    if not (grant or claimed):
        yield from _native(pod, inventory, use)


def shares_of_survivor(containers: Iterable[ContainerGrant], inventory: Inventory | None) -> tuple[ShareRow, ...]:
    """What a deleted pod holds whose processes still run. What they use is not known."""
    return tuple(share for share, _ in _granted(containers, inventory, lambda container, gpu: None))


def _granted(
    containers: Iterable[ContainerGrant], inventory: Inventory | None, figures: Figures
) -> Iterator[tuple[ShareRow, ShareFigures | None]]:
    indices = _indices(inventory)
    for container in containers:
        for share in container.shares:
            known = figures(container.name, share.gpu)
            yield _granted_share(container, share, indices, known), known


def _granted_share(
    container: ContainerGrant, share: Share, indices: Mapping[str, int], known: ShareFigures | None
) -> ShareRow:
    return ShareRow(
        container=container.name,
        gpu=share.gpu,
        index=indices.get(share.gpu),
        mode=share.mode.value,
        memory_mib=share.memory_mib,
        limit_mib=share.limit_mib,
        compute_percent=None if share.mode is Mode.WHOLE or _is_alone(share) else share.cores,
        compute_meaning=compute.held_by(share),
        mig=f"{share.mig.profile} at {share.mig.start}" if share.mig else "",
        init=container.init and not container.sidecar,
        used_mib=known.used_mib if known else None,
        peak_mib=known.peak_mib if known else None,
    )


def _is_alone(share: Share) -> bool:
    """Whether no limit is held because no other container may be on the GPU."""
    return share.exclusive and share.mode is not Mode.MIG


def _native(
    pod: Object, inventory: Inventory | None, use: ClusterUse
) -> Iterator[tuple[ShareRow, ShareFigures | None]]:
    """The devices that kubelet chose. Only the agent knows which they are."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    indices, modes = _indices(inventory), _modes(inventory)
    for container in read_containers(pod):
        for device, known in sorted(use.shares.get((namespace, name, container.name), {}).items()):
            gpu, part = use.gpu_of(device), use.mig_devices.get(device)
            mode = Mode.MIG if part else modes.get(gpu, Mode.WHOLE)
            index = indices.get(gpu, use.gpus[gpu].gpu_index if gpu in use.gpus else None)
            share = ShareRow(
                container=container.name,
                gpu=gpu,
                index=index,
                mode=mode.value,
                memory_mib=known.limit_mib or 0,
                limit_mib=known.limit_mib or 0,
                compute_percent=None if mode is Mode.WHOLE else known.cores_percent,
                compute_meaning=compute.held_natively(mode, known.cores_percent),
                mig=part.profile if part else "",
                init=container.init and not container.sidecar,
                used_mib=known.used_mib,
                peak_mib=known.peak_mib,
            )
            yield share, known


def _indices(inventory: Inventory | None) -> dict[str, int]:
    return {gpu.uuid: gpu.index for gpu in inventory.gpus} if inventory else {}


def _modes(inventory: Inventory | None) -> dict[str, Mode]:
    """How containers that kubelet allocates share each GPU: what the agent sees, or else what the node offers."""
    if inventory is None:
        return {}
    offered = {each.resource: NATIVE_MODES[each.sharing] for each in inventory.native_resources}
    return {gpu.uuid: gpu.mode or offered.get(gpu.native_resource, Mode.WHOLE) for gpu in inventory.gpus}
