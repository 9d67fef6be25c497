"""What the chart says of itself: Chart.yaml, with annotations for Artifact Hub, and its README."""

from base64 import b64encode
from pathlib import Path
from typing import Any

from docs.generate import values
from docs.generate.markdown import table
from lamina.core.component_names import SITE
from lamina.core.definitions import custom_resource_definitions
from lamina.core.gpus import Inventory
from lamina.core.grants import Grant
from lamina.install.chart import SOURCES, yaml_text
from lamina.install.values import Values
from lamina.install.versions import NEWEST, OLDEST
from lamina.operations.dashboard import page

_ICON = Path(str(page.__path__[0])) / "icon.svg"
_LEFT_OUT = """\
# Left out, because the project has no public address yet: sources, and Artifact Hub's links, signKey and images, which
# name a host. The icon is in this file for the same reason.
"""
_README = """\
# Lamina's chart

GPU sharing for Kubernetes: pods get a part of an NVIDIA GPU, with a limit of its memory and compute.

    helm install lamina FOLDER --namespace lamina-system --create-namespace --set image.repository=REPOSITORY
    helm test lamina --namespace lamina-system --logs

The namespace has to admit privileged pods:

    kubectl label namespace lamina-system pod-security.kubernetes.io/enforce=privileged

An upgrade keeps the values of the installation with

    helm upgrade lamina FOLDER --namespace lamina-system --reset-then-reuse-values

It needs Kubernetes {oldest} or newer and was tested up to {newest}.
[Install]({site}/how-to/install/) has what nodes need, and [Upgrade]({site}/how-to/upgrade/) what happens to running
pods.

## Values

`values.schema.json` lets Helm refuse what the components would refuse, below `config` too.
[Configuration]({site}/reference/configuration/) lists its keys.

{values}
"""


def chart_yaml() -> str:
    oldest = f">={OLDEST[0]}.{OLDEST[1]}.0-0"
    icon = "data:image/svg+xml;base64," + b64encode(_ICON.read_bytes()).decode()
    head = {"apiVersion": "v2", "name": "lamina", "description": "GPU sharing for Kubernetes", "type": "application"}
    head |= {"version": SOURCES, "kubeVersion": oldest, "home": SITE, "icon": icon}
    more = {"keywords": ["gpu", "nvidia", "cuda", "sharing", "vgpu", "mig", "mps", "scheduler"]}
    people = {"maintainers": [{"name": "Lamina maintainers"}]}
    return _LEFT_OUT + yaml_text(head | more | people | {"annotations": _annotations()})


def _annotations() -> dict[str, str]:
    """Of Artifact Hub, whose values are texts."""
    crds = [_crd(each) for each in custom_resource_definitions()]
    return {
        "artifacthub.io/category": "ai-machine-learning",
        "artifacthub.io/license": "Apache-2.0",
        "artifacthub.io/operator": "false",
        "artifacthub.io/crds": yaml_text(crds),
    }


def _crd(definition: dict[str, Any]) -> dict[str, str]:
    kind = definition["spec"]["names"]["kind"]
    return {
        "kind": kind,
        "version": definition["spec"]["versions"][0]["name"],
        "name": definition["metadata"]["name"],
        "displayName": kind,
        "description": str({each.__name__: each.__doc__ for each in (Inventory, Grant)}[kind]),
    }


def readme() -> str:
    rows = table(("value", "meaning", "allowed", "default"), values.rows(Values))
    return _README.format(oldest=_minor(OLDEST), newest=_minor(NEWEST), site=SITE, values=rows)


def _minor(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
