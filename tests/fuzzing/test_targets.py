"""Each fuzzing target holds for its seeds and what is next to them, and finds a fault that is planted."""

import os
import random

import pytest

from lamina.dialects import parser
from lamina.enforcement import layout, usage
from tests.building import ROOT
from tests.fuzzing.seeds import EXAMPLES, seeds
from tests.fuzzing.targets import DESCRIBED, TARGETS

CASES = int(os.environ.get("LAMINA_EXAMPLES", "1")) * 60
CLUSTERFUZZLITE = ROOT / ".clusterfuzzlite"


def changed(data: bytes, draw: random.Random) -> bytes:
    """The data with a part replaced, repeated or removed."""
    first, last = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    last = min(last, first + 40)
    middle = draw.choice((b"", data[first:last] * 2, draw.randbytes(last - first), b"-1", b"null", b"1e400", b"\xff"))
    return data[:first] + middle + data[last:]


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_holds_next_to_its_seeds(target: str) -> None:
    draw, known = random.Random(target), seeds(target)
    assert known
    for seed in known:
        TARGETS[target](seed)
    for _ in range(CASES):
        TARGETS[target](changed(draw.choice(known), draw))


def test_a_configuration_that_is_written_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzzing.targets.to_yaml", lambda accepted: "")
    with pytest.raises(AssertionError):
        TARGETS["configuration"]((EXAMPLES / "configuration/mps.yaml").read_bytes())


def test_an_error_that_is_no_sentence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "read_named", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        TARGETS["pods"](seeds("pods")[0])


def test_a_figure_below_zero_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that was refunded but never charged."""
    monkeypatch.setattr(usage, "max", lambda _, figure: figure, raising=False)
    refunded = layout.UsageDevice.compute.offset + layout.UsageCompute.refund_ns.offset
    place = layout.UsageFile.devices.offset + refunded - DESCRIBED
    with pytest.raises(AssertionError):
        TARGETS["usage_files"](bytes(place) + b"\x01")


def test_clusterfuzzlite_builds_every_target() -> None:
    (listed,) = [line for line in (CLUSTERFUZZLITE / "build.sh").read_text().splitlines() if line.startswith("for ")]
    assert listed.removeprefix("for target in ").removesuffix("; do").split() == list(TARGETS)
