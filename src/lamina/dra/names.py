"""Names that the driver shares with manifests, kubelet and the container runtime, and its DeviceClasses."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

DRIVER = "gpu.nvidia.com"
"""The name of NVIDIA's driver, so that claims and classes for it work unchanged."""
STANDARD = "resource.kubernetes.io"
"""The domain of attributes that Kubernetes defines."""
HAMI_DRIVER = "hami-core-gpu.project-hami.io"
HAMI_TYPE = "hami-gpu"
"""The type of a GPU among HAMi's attributes."""
MEMORY, CORES = "memory", "cores"
_MAX_NAME = 200


def device_number(device: str) -> int | None:
    """The number of the GPU that a device is, or is a part of; None for a device of another driver."""
    found = re.fullmatch(r"gpu-(\d{1,9})(?:-mig-.+)?", device)
    return int(found[1]) if found else None


def cdi_name(claim_uid: str, request: str) -> str:
    """The CDI name of one request of a claim: always the same, and of the form of all CDI names."""
    return hashlib.sha256(f"{claim_uid}/{request}".encode()).hexdigest()[:32]


def slice_name(node: str, driver: str, number: int) -> str:
    """The name of a node's slice. A long node name is shortened, and a hash keeps it apart from similar ones."""
    tail = f"{driver}-{number}"
    if len(node) + len(tail) >= _MAX_NAME:
        node = f"{node[:100].rstrip('.-')}-{hashlib.sha256(node.encode()).hexdigest()[:16]}"
    return f"{node}-{tail}"


def base_request(request: str) -> str:
    """The request that containers name: `gpu` for the alternative `gpu/small`."""
    return request.partition("/")[0]


LABELS = {"app.kubernetes.io/name": "lamina", "app.kubernetes.io/part-of": "lamina"}
"""By these labels `lamina uninstall` finds the classes that the controller made."""


def device_classes(driver: str) -> list[dict[str, Any]]:
    """Those that a cluster needs whose agents serve claims under the name `driver`."""
    domain = driver.partition(".")[2]
    return [
        _device_class(driver, driver, driver, "gpu", extendedResourceName=f"{domain}/gpu"),
        _device_class(f"mig.{domain}", driver, driver, "mig"),
        *([_device_class(HAMI_DRIVER, driver, HAMI_DRIVER, HAMI_TYPE)] if driver == DRIVER else []),
    ]


def class_names(driver: str) -> frozenset[str]:
    return frozenset(each["metadata"]["name"] for each in device_classes(driver))


def differs(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a class selects or serves something else than the wanted one of its name.

    An API server without extended resources by claims drops their name.
    """
    spec, meant = found.get("spec") or {}, wanted["spec"]
    served = spec.get("extendedResourceName") or ""
    return spec.get("selectors") != meant["selectors"] or served not in ("", meant.get("extendedResourceName", ""))


def _device_class(name: str, driver: str, domain: str, kind: str, **more: Any) -> dict[str, Any]:
    expression = f"device.driver == '{driver}' && device.attributes['{domain}'].type == '{kind}'"
    return {
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **more},
    }
