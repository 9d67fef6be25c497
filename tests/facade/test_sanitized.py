"""The whole facade under AddressSanitizer and UndefinedBehaviorSanitizer, with the programs of the other tests."""

import subprocess
from pathlib import Path

import pytest

from tests.facade.built import sanitized
from tests.facade.conftest import MakeContainer


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = sanitized(tmp_path_factory.mktemp("sanitized"), "cuda")
    if found is None:
        pytest.skip("this compiler has no AddressSanitizer as a library")
    return found


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("threads", ("4", "500")), ("killed", ("40", "3")), ("crowd", ("turn", "60")),
        ("environment", ("50", "change", "4", "500")), ("environment", ("1", "assign", "4", "500")),
    ],
)  # fmt: skip
def test_nothing_is_found(
    program: str, arguments: tuple[str, ...], preload: str, container: MakeContainer, programs: dict[str, Path]
) -> None:
    environment = container(303 + 1700).environment() | {"LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [programs[program], *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    # Before the last line, processes that are killed may say that together they asked for more than the limit.
    output = done.stdout.splitlines()[-1:]
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr[-3000:]
    assert output and output[0].startswith("ok"), done.stdout + done.stderr[-3000:]
