"""HAMi's marks on a bound pod, mirrored from its grant for the tools that read them. Nobody of ours reads them back.

The phase is the one at which HAMi arrives: at `allocating` HAMi's own node agent would take the pod for one that
still waits for its GPUs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lamina.model.grants import ContainerGrant, Grant
from lamina.ports.kube import Object

_FAMILY = "NVIDIA"


def hami_marks(pod: Mapping[str, Any], grant: Grant, now: float) -> Object:
    """The merge patch that marks the pod; it is refused where another pod has its name by now. `now` is Unix time."""
    devices = _encoded(pod["spec"], grant.containers)
    moment = str(int(now))
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


def _encoded(spec: Mapping[str, Any], granted: Iterable[ContainerGrant]) -> str:
    """`uuid,NVIDIA,MiB,cores:` for each share and `;` after each container, those without shares included."""
    by_name = {container.name: container for container in granted}
    text = ""
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        if container["name"] in by_name:
            for share in by_name[container["name"]].shares:
                text += f"{share.gpu},{_FAMILY},{share.memory_mib},{share.cores}:"
        text += ";"
    return text
