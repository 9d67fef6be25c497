"""What holds for all tests: how properties are tried, which files begin, that a repetition proves something, and that
a run says what it skipped.

Each run of the tests tries the same examples, so that a failure comes from a change. With `LAMINA_EXAMPLES` set, each
run tries others.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.repeated import pytest_runtest_makereport
from tests.summary import pytest_terminal_summary

__all__ = ["pytest_runtest_makereport", "pytest_terminal_summary"]

# A test next to others on a busy machine may be slow at any example, which says nothing about the product.
settings.register_profile(
    "lamina",
    deadline=None,
    derandomize="LAMINA_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("lamina")

# Modules that tests share have assertions too. Their failures show the compared values, as in test modules.
pytest.register_assert_rewrite("tests.agent", "tests.enforcement", "tests.facade", "tests.placement", "tests.scenarios")

# Folders with the longest files, longest first: side by side, no core should be left with one of them at the end.
SLOW_FOLDERS = ("scenarios", "lab", "facade", "lab_kubelet", "placement", "controller")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order within a file stays."""
    root = Path(__file__).parent
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason="needs root"))

    def rank(item: pytest.Item) -> int:
        folder = item.path.relative_to(root).parts[0]
        return SLOW_FOLDERS.index(folder) if folder in SLOW_FOLDERS else len(SLOW_FOLDERS)

    items.sort(key=rank)
