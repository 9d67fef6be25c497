"""The Helm chart, which is written by hand, and the objects that it makes for given values and a Kubernetes version.

The chart is in deploy/helm/lamina; this package holds a link to it, and an installed one a copy. Its CRDs, its values
with their schema, its dashboards and its rules are written by `make deploy`. Helm creates CRDs first and never changes
or removes them; the controller keeps them up to date.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from lamina import __version__
from lamina.configuration import CONFIG_MAP
from lamina.core.component_names import DEFAULT_NAMESPACE, SITE
from lamina.core.definitions import custom_resource_definitions
from lamina.install.names import labels
from lamina.install.templates import render
from lamina.install.versions import Version
from lamina.ports.kube import Object

_FOLDER = Path(__file__).parent / "chart"
_FOR_HELM = ("templates/checks.yaml", "templates/NOTES.txt", "templates/tests/")
"""What `lamina install` checks and says by itself, and what `helm test` runs."""
_LAST = frozenset({"Deployment", "DaemonSet"})
SOURCES = "0.0.0"
"""What has no version of its own: files in deploy/, which do not change with each commit."""


def chart() -> dict[str, str]:
    """The chart's files, by path. In the sources, the chart has no version; this one has ours."""
    files = {str(path.relative_to(_FOLDER)): path.read_text() for path in sorted(_FOLDER.rglob("*")) if path.is_file()}
    ours = f"version: {chart_version(__version__)}\nappVersion: {__version__}\n"
    return files | {"Chart.yaml": files["Chart.yaml"].replace(f"version: {SOURCES}\n", ours)}


def chart_version(version: str) -> str:
    """A version of Lamina in the form that Helm requires: 0.2.0-dev.42+g1a2b3c4 for 0.2.0.dev42+g1a2b3c4."""
    return re.sub(r"\.?(dev|rc)(\d+)", r"-\1.\2", version)


def namespace_object(name: str, *, of_others: bool = False) -> Object:
    """The namespace of Lamina. Agents mount host directories, which needs the privileged pod security standard.

    One of others does not get the label by which an uninstallation knows that it may delete it.
    """
    security = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": ({} if of_others else labels()) | security},
    }


def definitions() -> list[Object]:
    """The CRDs, which the controller keeps up to date."""
    return [crd | {"metadata": crd["metadata"] | {"labels": labels()}} for crd in custom_resource_definitions()]


def objects(
    values: Mapping[str, Any], version: Version, own: str = __version__, *, namespace: str = DEFAULT_NAMESPACE
) -> list[Object]:
    """All objects but the namespace and the CRDs, those that make pods last. `values` are plain data, and `own` is
    Lamina's version."""
    files = chart()
    data = {
        "Values": values,
        "Chart": {"Name": "lamina", "Version": chart_version(own), "AppVersion": own, "Home": SITE},
        "Release": {"Name": "lamina", "Namespace": namespace, "Service": "lamina"},
        "Capabilities": {"KubeVersion": {"Version": "v" + ".".join(map(str, version))}},
        "Files": {"Get": files.__getitem__},
    }
    templates = {
        path: files[path] for path in files if path.startswith("templates/") and not path.startswith(_FOR_HELM)
    }
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # it is ten times as fast
    documents = [
        each for text in render(templates, data).values() for each in yaml.load_all(text, loader) if each is not None
    ]
    return sorted(documents, key=lambda each: each["kind"] in _LAST)


def is_configuration(document: Object) -> bool:
    """Whether this is the ConfigMap with Lamina's configuration."""
    return (document["kind"], document["metadata"]["name"]) == ("ConfigMap", CONFIG_MAP)


def images(documents: Iterable[Any]) -> list[str]:
    """The images that the objects pull, each once."""
    return list(dict.fromkeys(_images(list(documents))))


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from (each,) if key == "image" and isinstance(each, str) else _images(each)
    elif isinstance(value, list):
        for each in value:
            yield from _images(each)


_WIDTH = 116


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def yaml_text(document: Any) -> str:
    """One document."""
    return yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, width=_WIDTH, allow_unicode=True)


def yaml_documents(documents: Iterable[Any]) -> str:
    """Several documents, each of which begins with `---`."""
    return yaml.dump_all(documents, Dumper=_PlainDumper, sort_keys=False, width=_WIDTH, explicit_start=True)
