"""The files in deploy/ that are not written by hand: `python -m tests.install.deploy_files` writes them.

The templates of the chart are written by hand. Its values with their schema follow from `lamina.install.values`, the
CRDs from the wire types, dashboards and rules from `lamina.install.telemetry`, and the manifests from all of it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from lamina.cli.install import _manifests
from lamina.install import values
from lamina.install.chart import SOURCES, definitions, yaml_text
from lamina.install.telemetry.dashboards import DASHBOARDS, dashboard_text
from lamina.install.telemetry.rules import rules_text
from lamina.install.values import Values
from lamina.operations.installed import InstalledCluster
from tests.install.chart_about import chart_yaml, readme
from tests.install.values_schema import values_schema

DEPLOY = Path(__file__).parents[2] / "deploy"
BY_HAND = ("README.md", "helm/lamina/templates/")
"""What of deploy/ is not written by this module."""
KUBERNETES = "1.36.0"
"""The version that the manifests are for."""
IMAGE, TAG = "REGISTRY/lamina", "TAG"
"""In the manifests: names of images have no capital letters, so no registry can have it."""


def files() -> dict[str, str]:
    """The text of each file, by path below deploy/."""
    chart = {
        "Chart.yaml": chart_yaml(),
        "README.md": readme(),
        "values.yaml": "\n".join(_defaults(Values, values.plain(Values()), 0)) + "\n",
        "values.schema.json": json.dumps(values_schema(), indent=1) + "\n",
        "rules.yaml": rules_text(),
        **{f"dashboards/lamina-{name}.json": dashboard_text(name) for name in DASHBOARDS},
        **{f"crds/{each['metadata']['name']}.yaml": yaml_text(each) for each in definitions()},
    }
    made = {f"helm/lamina/{path}": text for path, text in chart.items()}
    made |= {f"grafana/lamina-{name}.json": dashboard_text(name) for name in DASHBOARDS}
    made["prometheus/rules.yaml"] = rules_text()
    minor = KUBERNETES.rpartition(".")[0]
    head = (
        f"# Lamina with default values for Kubernetes {minor}. Rendered from the chart by `make deploy`.\n"
        f"# Replace {IMAGE}:{TAG} by your image. No node accepts it as it stands.\n"
    )
    read = values.read([], [f"image.repository={IMAGE}", f"image.tag={TAG}"])
    return made | {
        f"manifests/kubernetes-{minor}.yaml": head
        + _manifests(values.plain(read), InstalledCluster(KUBERNETES), own=SOURCES)
    }


def _defaults(kind: Any, of: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The defaults with a comment above each."""
    margin = "  " * depth
    for name, schema in msgspec.json.schema_components([kind])[1][kind.__name__]["properties"].items():
        inner = next(field.type for field in msgspec.structs.fields(kind) if field.encode_name == name)
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield f"{margin}# {' '.join((inner.__doc__ or '').split())}"
            yield f"{margin}{name}:"
            yield from _defaults(inner, of[name], depth + 1)
        else:
            yield f"{margin}# {schema['title']}."
            yield from (margin + line for line in yaml_text({name: of[name]}).rstrip("\n").splitlines())


def main() -> None:
    made = files()
    for path in DEPLOY.rglob("*"):
        below = str(path.relative_to(DEPLOY))
        if path.is_file() and below not in made and not below.startswith(BY_HAND):
            path.unlink()
    for below, text in made.items():
        (DEPLOY / below).parent.mkdir(parents=True, exist_ok=True)
        (DEPLOY / below).write_text(text)


if __name__ == "__main__":
    main()
