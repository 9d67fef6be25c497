"""What the page of keys of other systems says about container variables is true."""

import re
from pathlib import Path

import pytest

from lamina.dialects.container_variables import COMPUTE_VARIABLE, IGNORED

ROOT = Path(__file__).resolve().parents[2]
READ = {
    name
    for path in (ROOT / "native/facade").rglob("*.c")
    for name in re.findall(r'(?:getenv\(|strcmp\(name, )"(\w+)"\)', path.read_text())
}


@pytest.mark.parametrize("variable", [COMPUTE_VARIABLE, *IGNORED])
def test_the_facade_does_not_read_a_variable_of_others(variable: str) -> None:
    assert variable not in READ
    assert not any(f'"{variable}' in path.read_text() for path in (ROOT / "native").rglob("*.[ch]"))


def test_the_facade_reads_the_variable_that_chooses_among_granted_gpus() -> None:
    assert "CUDA_VISIBLE_DEVICES" in READ
