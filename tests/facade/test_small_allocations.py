"""Allocations of up to 1 MiB share blocks of 2 MiB, and a block counts as long as anything in it is allocated."""

import subprocess
from pathlib import Path

import pytest

from tests.building import SANITIZED, compile_program
from tests.facade.built import ROUNDING, build_facade
from tests.facade.conftest import CONTEXT, MIB, MakeContainer

ROOM_MIB = 120
LIMIT_MIB = CONTEXT // MIB + ROOM_MIB
SIZES = (1, 513, 700_000, 1 << 20, 3_000_000)
UNITS = ("blocks", "small_blocks")
KINDS = ("plain", "pitch", "managed", "array", "normalized", "async")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_no_size_of_any_kind_exceeds_the_limit(
    kind: str, size: int, container: MakeContainer, programs: dict[str, Path]
) -> None:
    done = container(LIMIT_MIB).run(programs["small"], str(LIMIT_MIB), "fill", kind, str(size))
    assert done.stdout.startswith("ok "), done.stdout + done.stderr
    count, asked, taken = map(int, done.stdout.split()[1:])
    assert count > 0 and asked <= taken * MIB
    assert taken > ROOM_MIB - 32, "a pool takes steps of 32 MiB, and no kind leaves more"


@pytest.mark.parametrize("size", [1, 513, 700_000])
def test_blocks_are_used_to_the_last_piece(size: int, container: MakeContainer, programs: dict[str, Path]) -> None:
    """Nothing is refused that the driver would serve from a block which counts already."""
    done = container(LIMIT_MIB).run(programs["small"], str(LIMIT_MIB), "fill", "plain", str(size))
    piece = max(512, 1 << (size - 1).bit_length())
    assert int(done.stdout.split()[1]) == ROOM_MIB * MIB // piece


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_mix_is_counted_exactly(seed: int, container: MakeContainer, programs: dict[str, Path]) -> None:
    done = container(LIMIT_MIB).run(programs["small"], str(LIMIT_MIB), "mix", str(seed), "12000")
    assert done.stdout.startswith("ok "), done.stdout + done.stderr[-500:]
    taken, refused = map(int, done.stdout.split()[1:])
    assert taken > 1000 and refused > 100


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_that_mix_never_exceed_it(threads: int, container: MakeContainer, programs: dict[str, Path]) -> None:
    done = container(LIMIT_MIB).run(programs["small"], str(LIMIT_MIB), "mix", "7", "6000", str(threads))
    assert done.stdout.startswith("ok "), done.stdout + done.stderr[-500:]
    taken, refused = map(int, done.stdout.split()[1:])
    assert taken > 1000 and refused > 100


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("way", ["powers", "first-fit", "alone"])
def test_blocks_are_counted_however_the_driver_divides_them(way: str, seed: int, tmp_path: Path) -> None:
    sources = ["native/tests/facade_small_blocks.c", *(f"native/facade/memory/{name}.c" for name in UNITS)]
    program = compile_program(tmp_path, "small_blocks", sources, *SANITIZED)
    done = subprocess.run([program, way, str(seed), "15000"], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.startswith("ok ") and int(done.stdout.split()[1]) > 0, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize(("size", "least"), [(1, 3.0), (700_000, 1.1)])
def test_counting_what_is_asked_for_would_not_do(
    size: int, least: float, container: MakeContainer, programs: dict[str, Path], tmp_path: Path
) -> None:
    """The null control: a facade without the rounding, as it once was."""
    environment = container(LIMIT_MIB).environment() | {"LD_PRELOAD": str(build_facade(tmp_path, "cuda", ROUNDING))}
    command = [programs["small"], str(LIMIT_MIB), "fill", "plain", str(size)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    word, times, *_ = done.stdout.split()
    assert word == "over" and float(times) >= least, done.stdout + done.stderr
