"""The files in deploy/, rendered from `lamina.install`: `python -m tests.install.deploy_files` writes them."""

import shutil
from pathlib import Path

from lamina.cli.install import _manifests
from lamina.install import values
from lamina.install.chart import chart
from lamina.install.telemetry.dashboards import DASHBOARDS, dashboard_text
from lamina.install.telemetry.rules import rules_text

DEPLOY = Path(__file__).parents[2] / "deploy"
GENERATED = ("helm", "manifests", "grafana", "prometheus")
"""The folders of deploy/ that hold nothing else."""
KUBERNETES = "1.36.0"
"""The version that the manifests are for."""
IMAGE = "REGISTRY/lamina"
"""In the manifests: names of images have no capital letters, so no registry can have it."""


def files() -> dict[str, str]:
    """The text of each file, by path below deploy/."""
    rendered = {f"helm/lamina/{path}": text for path, text in chart().items()}
    rendered |= {f"grafana/lamina-{name}.json": dashboard_text(name) for name in DASHBOARDS}
    rendered["prometheus/rules.yaml"] = rules_text()
    minor = KUBERNETES.rpartition(".")[0]
    head = (
        f"# Lamina with default values for Kubernetes {minor}. Rendered from lamina.install by `make deploy`.\n"
        f"# Replace {IMAGE} by your image. No node accepts it as it stands.\n"
    )
    read = values.read([], [f"image.repository={IMAGE}"])
    return rendered | {f"manifests/kubernetes-{minor}.yaml": head + _manifests(values.plain(read), KUBERNETES)}


def main() -> None:
    for folder in GENERATED:
        shutil.rmtree(DEPLOY / folder, ignore_errors=True)
    for path, text in files().items():
        (DEPLOY / path).parent.mkdir(parents=True, exist_ok=True)
        (DEPLOY / path).write_text(text)


if __name__ == "__main__":
    main()
