import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kubectl import find_kubectl
from tests.scenarios.labs import Lab, lamina

StartLab = Callable[..., Lab]


@pytest.fixture(scope="module")
def start_lab() -> Iterator[StartLab]:
    """Start labs by name, configuration and options; all are stopped after the module."""
    with labs_of_tests() as start:
        yield start


@pytest.fixture(scope="package")
def v100_lab() -> Iterator[Lab]:
    """One node with two V100 of 32 GB, as in 4paradigm's functional test; who uses it leaves it as it was."""
    with labs_of_tests() as start:
        yield start("v100", "--gpu", "V100-PCIE-32GB")


@contextmanager
def labs_of_tests() -> Iterator[StartLab]:
    kubectl = find_kubectl()
    root = Path(tempfile.mkdtemp(prefix="lam"))
    environment = os.environ | {"LAMINA_LABS": str(root)}
    names: list[str] = []

    def start(name: str, *options: str, config: str = "", machines: str = "") -> Lab:
        names.append(name)
        for option, text in (("config", config), ("machines", machines)):
            if text:
                (root / f"{name}-{option}.yaml").write_text(text)
                options = (*options, f"--{option}", str(root / f"{name}-{option}.yaml"))
        result = lamina("lab", "up", "--name", name, *options, environment=environment)
        assert result.returncode == 0, result.stderr
        return Lab(name, root, root / name / "kubeconfig", kubectl)

    yield start
    for name in names:
        lamina("lab", "down", "--name", name, environment=environment)
    left = [path.name for path in root.iterdir() if path.is_dir()]
    shutil.rmtree(root)
    assert left == [], "a lab that was taken down left its directory"


@pytest.fixture(scope="module")
def served(start_lab: StartLab, request: pytest.FixtureRequest) -> Lab:
    """One node as the document of the module's `ROWS` sets it up."""
    rows = request.module.ROWS
    found = start_lab("rows", *rows.options, config=rows.config, machines=rows.machines)
    rows.set_up(found)
    return found


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """That of the module's document, or else one with two V100."""
    found: Lab = request.getfixturevalue("served" if hasattr(request.module, "ROWS") else "v100_lab")
    yield found
    found.delete_workloads()
