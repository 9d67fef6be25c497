"""What holds for all tests: how much time properties have, and which files begin."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A test beside others on a busy machine may be slow at any example, which says nothing about the product.
settings.register_profile("lamina", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lamina")

# Folders with the longest files, longest first: side by side, no core should be left with one of them at the end.
LONGEST = ("scenarios", "lab", "facade", "lab_kubelet", "placement", "control")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order within a file stays."""
    root = Path(__file__).parent

    def rank(item: pytest.Item) -> int:
        folder = item.path.relative_to(root).parts[0]
        return LONGEST.index(folder) if folder in LONGEST else len(LONGEST)

    items.sort(key=rank)
