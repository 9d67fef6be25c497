"""The files have one layout, whether C or Python looks at them."""

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from lamina.enforcement import layout
from tests.building import compile_program


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    program = compile_program(tmp_path_factory.mktemp("layout"), "layout", ["native/tests/facade_layout.c"])
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[0]: [int(word) for word in line.split()[1:]] for line in lines}


def c_name(structure: type[ctypes.Structure]) -> str:
    name = structure.__name__.removesuffix("File").removesuffix("Record")
    return "lamina" + re.sub(r"(?=[A-Z])", "_", name).lower()


@pytest.mark.parametrize("structure", layout.STRUCTURES, ids=lambda s: s.__name__)
def test_every_field_lies_where_c_has_it(structure: type[ctypes.Structure], printed: dict[str, list[int]]) -> None:
    name = c_name(structure)
    fields = {f"{name}.{field[0]}": getattr(structure, field[0]) for field in structure._fields_}
    assert printed[name] == [ctypes.sizeof(structure)]
    assert {key: [value.offset, value.size] for key, value in fields.items()} == {
        key: value for key, value in printed.items() if key.startswith(f"{name}.")
    }


def test_sizes_and_constants_are_the_same(printed: dict[str, list[int]]) -> None:
    assert printed["usage_bytes"] == [layout.usage_bytes(1), layout.usage_bytes(16)]
    assert printed["constants"] == [
        layout.LIMITS_MAGIC, layout.USAGE_MAGIC, layout.ARBITER_MAGIC, layout.SIGNAL_MAGIC, layout.VERSION,
        layout.MAX_DEVICES, layout.SLOTS, layout.UUID_BYTES, layout.BINS, len(layout.KINDS),
        layout.SHARES, layout.FIGURES, layout.HEEDED, layout.PID_BITS, layout.START_BITS, layout.NS_BITS,
    ]  # fmt: skip


def test_kinds_and_policies_have_the_same_order() -> None:
    header = (Path(__file__).parents[2] / "native/include/lamina_layout.h").read_text()
    kinds = re.findall(r"LAMINA_([A-Z]+) = (\d),", header.split("enum lamina_kind")[1].split("}")[0])
    policies = re.findall(r"LAMINA_COMPUTE_([A-Z]+) = (\d),", header)
    assert [name.lower() for name, _ in kinds] == [*layout.KINDS, "kinds"]
    assert [name.lower() for name, _ in policies] == list(layout.COMPUTE_POLICIES)
