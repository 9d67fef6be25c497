from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.quantities import parse_quantity
from lamina.errors import BadInput

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def value(written: object) -> Fraction:
    return parse_quantity(written, where="x").value


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (10000, 10000),
        ("10000", 10000),
        ("10k", 10000),
        ("1e4", 10000),
        ("1E4", 10000),
        ("+5", 5),
        ("-5", -5),
        (-5, -5),
        ("0", 0),
        ("1.5", Fraction(3, 2)),
        (0.5, Fraction(1, 2)),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        ("1000m", 1),
        ("1.5Gi", 3 * 2**29),
        ("5E", 5 * 10**18),
        ("5e-3", Fraction(5, 1000)),
        ("0.1", Fraction(1, 10)),
    ],
)
def test_a_quantity_is_read_exactly(written: object, expected: Fraction) -> None:
    assert value(written) == expected


@pytest.mark.parametrize("unit", DECIMAL)
def test_decimal_units_are_powers_of_ten(unit: str) -> None:
    assert value(f"3{unit}") == 3 * Fraction(10) ** DECIMAL[unit]
    assert not parse_quantity(f"3{unit}", where="x").binary


@pytest.mark.parametrize("unit", BINARY)
def test_binary_units_are_powers_of_1024(unit: str) -> None:
    assert value(f"3{unit}") == 3 * 1024 ** BINARY[unit]
    assert parse_quantity(f"3{unit}", where="x").binary


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "five",
        "5 ",
        " 5",
        "5K",
        "5gi",
        "5GiB",
        "1e",
        "1e3k",
        "0x10",
        "1_000",
        "٣",
        "--5",
        "1.2.3",
        ".",
        "k",
        "1e999999999",
        "9" * 60,
        "nan",
        "inf",
        float("nan"),
        float("inf"),
        True,
        None,
        [],
        {},
        b"5",
    ],
)
def test_anything_else_is_refused_with_its_field(written: object) -> None:
    with pytest.raises(BadInput, match=r"^limits\.memory must be a Kubernetes quantity such as 2 or 1500m, got "):
        parse_quantity(written, where="limits.memory")


@given(st.integers(-(10**30), 10**30))
def test_whole_numbers_survive(number: int) -> None:
    assert value(str(number)) == number
    assert parse_quantity(str(number), where="x").whole == number


@given(st.integers(0, 10**12), st.sampled_from(list(DECIMAL)))
def test_units_scale_exactly(number: int, unit: str) -> None:
    assert value(f"{number}{unit}") == number * Fraction(10) ** DECIMAL[unit]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9))
def test_a_fraction_is_never_rounded_to_a_whole_number(number: object) -> None:
    quantity = parse_quantity(f"{number:f}", where="x")
    assert (quantity.whole is None) == (quantity.value != int(quantity.value))
