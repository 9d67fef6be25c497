"""The lock of a program on its slot shows the node that the program lives."""

from lamina.enforcement.open_usage import is_in_use
from tests.facade.conftest import MakeContainer


def test_the_usage_file_is_in_use_until_the_program_has_ended(container: MakeContainer) -> None:
    box = container()
    usage = box.folder / "usage"
    assert not is_in_use(usage)
    with box.waiting("assert begin() == (0, 0, 0)"):
        assert is_in_use(usage)
    assert not is_in_use(usage)
