"""Whatever the usage file holds, the libraries in the container access nothing outside of their memory."""

import os
from pathlib import Path

import pytest

from tests.facade.built import UNCHECKED, sanitized
from tests.facade.conftest import MakeContainer, make_container
from tests.facade.spoiling import spoil

CASES = int(os.environ.get("LAMINA_TEST_SPOIL", "1500"))


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = sanitized(tmp_path_factory.mktemp("sanitized"), "cuda", "nvml")
    if found is None:
        pytest.skip("this compiler has no AddressSanitizer as a library")
    return found


@pytest.mark.parametrize("seed", range(1, 4))
def test_hostile_words_in_the_usage_file_lead_nowhere(
    seed: int, preload: str, container: MakeContainer, programs: dict[str, Path]
) -> None:
    box = container(gpus=2, granted=(0, 1), cores=30)
    assert spoil(box, programs["spoiled"], preload, seed, CASES) == ""


def test_a_device_that_is_not_checked_is_found(programs: dict[str, Path], tmp_path: Path) -> None:
    """The null control."""
    preload = sanitized(tmp_path, "cuda", "nvml", changes=UNCHECKED)
    if preload is None:
        pytest.skip("this compiler has no AddressSanitizer as a library")

    def finds(seed: int) -> bool:
        (tmp_path / str(seed)).mkdir()
        box = make_container(tmp_path / str(seed), gpus=2, granted=(0, 1), cores=30)
        return spoil(box, programs["spoiled"], preload, seed, CASES) != ""

    assert any(finds(seed) for seed in range(1, 20))
