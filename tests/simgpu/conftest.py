"""A machine with two V100 cards of 16 GB."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simgpu.machines import V100, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine", V100)
    yield made
    made.close()
