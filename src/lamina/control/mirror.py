"""The marks of HAMi or Volcano on a bound pod, mirrored from its grant for the tools that read them.

Each vocabulary's pods carry that system's own keys, and all say which mode they got where there was a choice. Nobody of
ours reads them back.

The phase is the one at which both arrive: at `allocating` their own node agents would take the pod for one that still
waits for its GPUs.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lamina.model.gpus import Inventory, MigInstance
from lamina.model.grants import Grant, Share
from lamina.model.mig_cards import MIG_CARDS
from lamina.ports.kube import Object

MODE = "lamina.dev/mode"
_FAMILY = "NVIDIA"
_DONE = str(2**64 - 1)
"""What Volcano writes in place of a time once the pod has its devices."""


def marks(pod: Mapping[str, Any], grant: Grant, now: float, inventory: Inventory | None = None) -> Object | None:
    """The merge patch that marks the pod, or None where there is nothing to mark. `now` is Unix time, `inventory` the
    node's.

    The patch is refused where another pod has its name by now.
    """
    mark, modes = _MARKS.get(grant.dialect), _modes(grant)
    patch: Object = {"metadata": {"uid": grant.pod_uid, "annotations": {}}}
    if mark is not None:
        patch = mark(pod, grant, str(int(now)))
    cut = _cut(pod["spec"], grant, inventory) if grant.dialect == "hami" else []
    if cut:
        patch["metadata"]["annotations"]["hami.io/vgpu-mig-allocations"] = msgspec.json.encode(cut).decode()
    if modes:
        patch["metadata"]["annotations"][MODE] = modes
    return patch if patch["metadata"]["annotations"] else None


def _modes(grant: Grant) -> str:
    """The mode of each container with the reason, or nothing where no node's policy left a choice."""
    return "; ".join(f"{each.name}: {each.because}" for each in grant.containers if each.because)


def _hami(pod: Mapping[str, Any], grant: Grant, moment: str) -> Object:
    devices = "".join(f"{container};" for container in _encoded(pod["spec"], grant))
    annotations = {
        "hami.io/vgpu-node": grant.node,
        "hami.io/vgpu-devices-to-allocate": devices,
        "hami.io/vgpu-devices-allocated": devices,
        "hami.io/vgpu-time": moment,
        "hami.io/bind-time": moment,
        "hami.io/bind-phase": "success",
    }
    labels = {"hami.io/vgpu-node": grant.node} if len(grant.node) <= 63 else {}
    return {"metadata": {"uid": grant.pod_uid, "annotations": annotations, "labels": labels}}


def _volcano(pod: Mapping[str, Any], grant: Grant, moment: str) -> Object:
    devices = ";".join(_encoded(pod["spec"], grant, instance=lambda mig: f"[0-{mig.start}]"))
    annotations = {
        "volcano.sh/vgpu-node": grant.node,
        "volcano.sh/vgpu-ids-new": devices,
        "volcano.sh/devices-to-allocate": devices,
        "volcano.sh/vgpu-time": _DONE,
        "volcano.sh/bind-time": moment,
        "volcano.sh/bind-phase": "success",
    }
    return {"metadata": {"uid": grant.pod_uid, "annotations": annotations}}


_MARKS: Mapping[str, Callable[[Mapping[str, Any], Grant, str], Object]] = {"hami": _hami, "volcano": _volcano}


def _encoded(
    spec: Mapping[str, Any], grant: Grant, instance: Callable[[MigInstance], str] = lambda mig: ""
) -> list[str]:
    """`uuid,NVIDIA,MiB,cores:` for each share, by container, those without shares included.

    `instance` is what a MIG instance adds to the UUID: Volcano writes the number of its geometry and the place there.
    Here nothing is in geometries, so that is 0 and the slice at which it begins.
    """
    return [
        "".join(
            f"{share.gpu}{instance(share.mig) if share.mig else ''},{_FAMILY},{share.memory_mib},{share.cores}:"
            for share in shares
        )
        for shares in _by_container(spec, grant)
    ]


def _by_container(spec: Mapping[str, Any], grant: Grant) -> list[tuple[Share, ...]]:
    """The shares of all containers in the pod's order, init containers first."""
    shares = {container.name: container.shares for container in grant.containers}
    names = [each["name"] for each in [*(spec.get("initContainers") or ()), *spec["containers"]]]
    return [shares.get(name, ()) for name in names]


def _cut(spec: Mapping[str, Any], grant: Grant, inventory: Inventory | None) -> list[dict[str, Any]]:
    """HAMi's list of MIG instances, without the ids that they get when the node makes them."""
    cards = {gpu.uuid: MIG_CARDS[gpu.mig_card] for gpu in inventory.gpus if gpu.mig_card} if inventory else {}
    return [
        {
            "containerIndex": container,
            "deviceIndex": device,
            "gpuUUID": share.gpu,
            "profile": share.mig.profile,
            "placement": {"start": share.mig.start, "size": cards[share.gpu].profile(share.mig.profile).size},
        }
        for container, shares in enumerate(_by_container(spec, grant))
        for device, share in enumerate(shares)
        if share.mig is not None and share.gpu in cards
    ]
