"""Pods as manifests write them, cut down to what dialects read, and what admission changes in them."""

from typing import Any

from lamina.configuration import Config
from lamina.dialects import PatchOperation, fill_defaults, parse

Pod = dict[str, Any]


def resources(**asked: Any) -> dict[str, Any]:
    """`gpumem_percentage=50` becomes the limit nvidia.com/gpumem-percentage; a name with a slash stays as it is."""
    return {"limits": {_name(key): value for key, value in asked.items() if value is not None}}


def container(name: str = "main", **asked: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", "resources": resources(**asked)}


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **rest: Any) -> Pod:
    """A pod of these containers; `annotations` goes to its metadata, everything else to its specification."""
    metadata = {"name": "pod", "annotations": rest.pop("annotations", {})}
    spec = {"containers": list(containers), **({"initContainers": list(init)} if init else {}), **rest}
    return {"metadata": metadata, "spec": spec}


def asking(**asked: Any) -> Pod:
    """A pod with one container that requests this."""
    return pod(container(**asked))


def changes_of(manifest: Pod, config: Config) -> tuple[PatchOperation, ...]:
    """What admission changes in a new pod."""
    return fill_defaults(manifest, parse(manifest, config), config)


def _name(key: str) -> str:
    return key if "/" in key else f"nvidia.com/{key.replace('_', '-')}"
