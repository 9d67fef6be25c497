"""A machine with two cards of different models."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simgpu.machines import Machine

DESCRIPTION = """
gpus:
- {model: V100-PCIE-32GB, busId: "00000000:D8:00.0", uuid: GPU-fcda056f-77c6-7fdf-f7c7-6453511eaaa1, temperature: 37}
- {model: A100-SXM4-40GB, busId: "00000000:AF:00.0"}
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine", DESCRIPTION)
    yield made
    made.close()
