"""The account, the table of blocks and the reader of limits, under sanitizers and against plain models."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.building import SANITIZED, compile_program

SHARED = ("account", "limits", "live_limits", "owner", "shared_allocations", "slot_lock", "usage_slots")
SOURCES = [*(f"native/facade/shared/{name}.c" for name in SHARED), "native/facade/memory/blocks.c"]


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    return compile_program(folder, "account", ["native/tests/facade_account.c", *SOURCES], *SANITIZED)


@pytest.mark.parametrize("seed", range(1, 7))
def test_random_work_agrees_with_a_plain_model(seed: int, fuzzer: Path) -> None:
    done = subprocess.run([fuzzer, str(seed), "20000"], capture_output=True, text=True, check=False)
    assert done.stdout == "held\n", done.stderr


def test_killed_at_any_instruction_of_the_protocol_it_leaves_nothing(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "steps", ["native/tests/facade_steps.c", *SOURCES])
    done = subprocess.run([program], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 77:
        pytest.skip("this machine does not let a process step through its child")
    seen = re.fullmatch(r"(\d+) states in (\d+) instructions\n", done.stdout)
    assert seen is not None and int(seen[1]) > 40 and int(seen[2]) > 1000, done.stdout + done.stderr


@pytest.mark.parametrize("seed", range(1, 4))
def test_garbage_in_the_usage_file_breaks_nothing(seed: int, tmp_path: Path) -> None:
    """LAMINA_TEST_FUZZ is how many changes are tried per seed; over 100,000 there is no limit on the time."""
    program = compile_program(tmp_path, "garbage", ["native/tests/facade_garbage.c", *SOURCES], *SANITIZED)
    rounds = os.environ.get("LAMINA_TEST_FUZZ", "40000")
    done = subprocess.run([program, str(seed), rounds], capture_output=True, text=True, check=False)
    assert done.stdout == "held\n", done.stderr


def test_threads_share_the_account_without_a_data_race(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "races", ["native/tests/facade_races.c", *SOURCES], "-fsanitize=thread")
    done = subprocess.run([program, "3000"], capture_output=True, text=True, timeout=300, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert done.returncode == 0 and done.stdout == "held\n", done.stderr
