"""The marks of HAMi or Volcano on a bound pod, mirrored from its grant for the tools that read them.

Each vocabulary's pods carry that system's own keys, and all say which mode they got where there was a choice. Nobody of
ours reads them back.

The phase is the one at which both arrive: at `allocating` their own node agents would take the pod for one that still
waits for its GPUs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lamina.model.grants import Grant
from lamina.ports.kube import Object

MODE = "lamina.dev/mode"
_FAMILY = "NVIDIA"
_DONE = str(2**64 - 1)
"""What Volcano writes in place of a time once the pod has its devices."""


def marks(pod: Mapping[str, Any], grant: Grant, now: float) -> Object | None:
    """The merge patch that marks the pod, or None where there is nothing to mark. `now` is Unix time.

    The patch is refused where another pod has its name by now.
    """
    mark, modes = _MARKS.get(grant.dialect), _modes(grant)
    patch: Object = {"metadata": {"uid": grant.pod_uid, "annotations": {}}}
    if mark is not None:
        patch = mark(pod, grant, str(int(now)))
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
    devices = ";".join(_encoded(pod["spec"], grant))
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


def _encoded(spec: Mapping[str, Any], grant: Grant) -> list[str]:
    """`uuid,NVIDIA,MiB,cores:` for each share, by container, those without shares included."""
    shares = {container.name: container.shares for container in grant.containers}
    return [
        "".join(
            f"{share.gpu},{_FAMILY},{share.memory_mib},{share.cores}:" for share in shares.get(container["name"], ())
        )
        for container in [*(spec.get("initContainers") or ()), *spec["containers"]]
    ]
