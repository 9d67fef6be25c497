"""Helm takes each configuration that the parts take, and names the place of a mistake in one that they refuse."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina import configuration
from lamina.errors import BadInput
from tests.helm import helm

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples/configuration").rglob("*.yaml"))
OWN = {"apiVersion": "lamina.dev/v1alpha1", "kind": "Configuration"}


def by_helm(config: dict[str, Any], folder: Path) -> str:
    """What Helm says against the configuration."""
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump({"image": {"repository": "example.com/lamina", "tag": "v1"}, "config": config}))
    chart = str(ROOT / "deploy/helm/lamina")
    reported = helm("template", "lamina", chart, "--namespace", "lamina-system", "--values", str(values))
    assert (reported.returncode == 0) == (reported.stderr == "")
    return reported.stderr


def refused_by_the_parts(config: dict[str, Any]) -> bool:
    try:
        configuration.load(yaml.safe_dump(config), "config")
    except BadInput:
        return True
    return False


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_are_taken(path: Path, tmp_path: Path) -> None:
    loaded = yaml.safe_load(path.read_text())
    if not refused_by_the_parts(loaded):  # files of other systems are converted first
        assert by_helm(loaded, tmp_path) == ""


@pytest.mark.parametrize(
    "config",
    [
        {"sharing": None, "scheduler": None},
        OWN | {"placement": None},
        {"resourceName": "example.com/gpu", "sharing": {"slots": 4}},
        {"devicePlugin": {"deviceMemoryScaling": 1.5, "disablecorelimit": "true"}},
        {"nodeconfig": [{"name": "a", "migstrategy": None, "filterdevices": {"uuid": ["GPU-1"]}}]},
        {"volcano": {"gpuMemoryFactor": 1}, "hami": {"gpuCorePolicy": "force"}},
    ],
)
def test_what_the_parts_take_is_taken(config: dict[str, Any], tmp_path: Path) -> None:
    assert not refused_by_the_parts(config)
    assert by_helm(config, tmp_path) == ""


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"shering": {"memoryScaling": 2}}, "at '/config': additional properties 'shering' not allowed"),
        ({"sharing": {"memoryScalng": 2}}, "at '/config/sharing': additional properties 'memoryScalng' not allowed"),
        (OWN | {"shering": {}}, "at '/config': additional properties 'shering' not allowed"),
        (OWN | {"hami": {}}, "at '/config': additional properties 'hami' not allowed"),
        (OWN | {"apiVersion": "v2"}, "at '/config/apiVersion': "),
        ({"kind": "Configuration"}, "at '/config': missing property 'apiVersion'"),
        ({"devicePlugin": {"deviceSplitCount": 0}}, "at '/config/devicePlugin/deviceSplitCount': minimum: got 0"),
        ({"devicePlugin": {"splitCount": 1}}, "at '/config/devicePlugin': additional properties 'splitCount'"),
        ({"hami": {"memory": 1}}, "at '/config/hami': additional properties 'memory' not allowed"),
        ({"nodeconfig": [{"name": "a", "slots": 3}]}, "at '/config/nodeconfig/0': additional properties 'slots'"),
        ({"nodes": {"overrides": [{"name": "a", "slot": 3}]}}, "at '/config/nodes/overrides/0': additional"),
        ({"resourceName": 3}, "at '/config/resourceName': got number, want string"),
    ],
)
def test_a_mistake_is_refused_with_its_path(config: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert refused_by_the_parts(config)
    assert message in by_helm(config, tmp_path)
