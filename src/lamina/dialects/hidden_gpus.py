"""Hiding GPUs from containers that request none, with `admission.hideGpus`.

NVIDIA's runtime gives GPUs to each container that names them, by a variable, a mount or an annotation. Images can
only set the variable; an entry in `env` wins over theirs and over `envFrom`, and the last of several counts.

    a container that requests no GPU    gets the variable as none
    a container that requests one       loses its own variable: what its device plugin says must hold
    a mount or an annotation            is refused, and so is a GPU that kubelet is to find on a chosen node: kubelet
                                        starts such a pod without the GPU where the node does not have the resource
"""

import posixpath
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.quantities import parse_quantity
from lamina.dialects.admission import check_unassigned
from lamina.dialects.native_devices import native_resources
from lamina.dialects.patches import PatchOperation
from lamina.dialects.registry import name_index
from lamina.dialects.unsupported import system_of
from lamina.errors import BadInput

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_NONE = {"name": _VISIBLE, "value": "none"}
_MOUNTS = "/run/nvidia-container-devices"
"""Below it each mount names a device; /var/run is a link to /run."""
_ANNOTATIONS = "cdi.k8s.io"
"""The domain of annotations that name devices. NVIDIA's runtime has nvidia.cdi.k8s.io for its own."""


def hide_gpus(pod: Mapping[str, Any], config: Config) -> tuple[PatchOperation, ...]:
    """What hides GPUs in a new pod, in the order in which it can be applied. Raises BadInput with one sentence."""
    spec = pod["spec"]
    for key in (pod.get("metadata") or {}).get("annotations") or ():
        if f".{key.partition('/')[0]}".endswith(f".{_ANNOTATIONS}"):
            raise BadInput(f"the annotation {key} names devices without requesting them; request GPUs as resources")
    changes: list[PatchOperation] = []
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            pointer = f"/spec/{field}/{index}"
            _check_mounts(container)
            if _requests_gpus(container, config):
                check_unassigned(spec)
                changes += _remove_variable(container, pointer)
            else:
                changes += _hide(container, pointer)
    return tuple(changes)


def hide_from_ephemeral(pod: Mapping[str, Any], present: Collection[str]) -> tuple[PatchOperation, ...]:
    """What hides GPUs in the ephemeral containers that are added to a pod; those with a name in `present` exist.

    They can request nothing. Raises BadInput with one sentence.
    """
    changes: list[PatchOperation] = []
    for index, container in enumerate(pod["spec"].get("ephemeralContainers") or ()):
        if container["name"] not in present:
            _check_mounts(container)
            changes += _hide(container, f"/spec/ephemeralContainers/{index}")
    return tuple(changes)


def _check_mounts(container: Mapping[str, Any]) -> None:
    for mount in container.get("volumeMounts") or ():
        path = posixpath.normpath(f"/{str(mount.get('mountPath')).lstrip('/')}").removeprefix("/var")
        if f"{path}/".startswith(f"{_MOUNTS}/"):
            raise BadInput(
                f'container "{container["name"]}": a mount at {mount["mountPath"]} names devices without requesting '
                "them; request GPUs as resources"
            )


def _requests_gpus(container: Mapping[str, Any], config: Config) -> bool:
    """Whether kubelet has to find a GPU for the container. Names by which it finds none do not count."""
    resources = container.get("resources") or {}
    amounts = [resources.get(field) or {} for field in ("limits", "requests")]
    return any(_names_devices(name, config) and _is_positive(each[name]) for each in amounts for name in each)


def _names_devices(name: str, config: Config) -> bool:
    return name in name_index(config).tickets or bool(native_resources((name,)) or system_of(name))


def _is_positive(amount: object) -> bool:
    try:
        return parse_quantity(amount, where="").value > 0
    except BadInput:
        return False


def _remove_variable(container: Mapping[str, Any], pointer: str) -> Iterator[PatchOperation]:
    """From the last to the first, so that no removal moves what follows."""
    for index, variable in reversed(list(enumerate(container.get("env") or ()))):
        if variable.get("name") == _VISIBLE:
            yield PatchOperation(f"{pointer}/env/{index}", op="remove")


def _hide(container: Mapping[str, Any], pointer: str) -> Iterator[PatchOperation]:
    env = container.get("env") or []
    own = [variable for variable in env if variable.get("name") == _VISIBLE]
    if own[-1:] == [_NONE]:
        return
    yield PatchOperation(f"{pointer}/env/-", _NONE) if env else PatchOperation(f"{pointer}/env", [_NONE])
