"""No program notices the facade below its limit, and at the limit only error 2; see tests/facade/differential."""

import os
from pathlib import Path

import pytest

from tests.facade.built import Change, build_facade
from tests.facade.differential.traces import Replayer
from tests.facade.differential.trying import LIMIT_MIB, first_difference

CASES = int(os.environ.get("LAMINA_TEST_PROGRAMS", "150"))
SWITCH = '-Dplanted(name)=({ extern char *getenv(const char *); getenv("PLANTED") && *getenv("PLANTED") == name; })'
PLANTED: dict[str, tuple[int | None, Change]] = {
    "the environment is replaced while the driver starts": (
        None,
        (
            "view/init.c",
            "    CUresult result = REAL(cuInit)(flags);\n",
            "    extern char **environ;\n"
            "    char **was = environ, *copy[1000] = {0};\n"
            "    for (int i = 0; was[i] != 0 && i < 999; i++)\n"
            "        copy[i] = was[i];\n"
            "    if (planted('a'))\n"
            "        environ = copy;\n"
            "    CUresult result = REAL(cuInit)(flags);\n"
            "    if (planted('a'))\n"
            "        environ = was;\n",
        ),
    ),
    "memory is free before the GPU has freed it": (
        LIMIT_MIB,
        ("memory/ordered_frees.c", "idle = REAL(cuStreamQuery)", "idle = planted('b') || REAL(cuStreamQuery)"),
    ),
    "a hidden call ends a capture": (
        None,
        (
            "cuda/capture_mode.h",
            "mode = CU_STREAM_CAPTURE_MODE_RELAXED;",
            "mode = planted('c') ? CU_STREAM_CAPTURE_MODE_GLOBAL : CU_STREAM_CAPTURE_MODE_RELAXED;",
        ),
    ),
    "shared memory counts twice": (
        None,
        (
            "memory/imports.c",
            "size = 0;\n    if (blocks_get",
            "size = 0;\n    if (planted('d') && pointer % 4096 != 0)\n        return false;\n    if (blocks_get",
        ),
    ),
    "an error is another one": (
        None,
        (
            "view/memory_info.c",
            "        return result;\n    if (free != NULL)\n        *free = left;",
            "        return planted('e') && result != CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : result;\n"
            "    if (free != NULL)\n        *free = left;",
        ),
    ),
}  # fmt: skip
"""Faults, each with the limit under which it shows."""


@pytest.mark.parametrize("limit_mib", [None, LIMIT_MIB], ids=["whole", "limited"])
def test_programs_notice_nothing(limit_mib: int | None, tmp_path: Path) -> None:
    assert first_difference(Replayer(tmp_path, limit_mib), range(CASES)) == ""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A facade in which each of the faults can be switched on."""
    changes = tuple(change for _, change in PLANTED.values())
    return build_facade(tmp_path_factory.mktemp("planted"), "cuda", changes, SWITCH)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_found(name: str, planted: Path, tmp_path: Path) -> None:
    """The null controls."""
    switch = dict(zip(PLANTED, "abcde", strict=True))[name]
    replayer = Replayer(tmp_path, PLANTED[name][0], {planted.name: planted}, PLANTED=switch)
    assert first_difference(replayer, range(CASES), small=False) != ""


def test_none_is_found_while_no_fault_is_switched_on(planted: Path, tmp_path: Path) -> None:
    replayer = Replayer(tmp_path, None, {planted.name: planted})
    assert first_difference(replayer, range(CASES // 10)) == ""
