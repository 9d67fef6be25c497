"""The DeviceClasses by which claims ask for the devices of the driver: NVIDIA's, and the one of HAMi's driver, whose
claims get the same devices."""

from collections.abc import Mapping
from typing import Any

from lamina.dra.names import DRIVER, HAMI_DRIVER, HAMI_TYPE

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
