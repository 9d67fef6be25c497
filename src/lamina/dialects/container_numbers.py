"""Annotations that give one number to all containers of a pod, or one to each: "60", or "main=60,side=30"."""

from collections.abc import Iterable, Mapping

from lamina.dialects.choices import MAX_ITEMS, split_list
from lamina.dialects.containers import quote
from lamina.errors import BadInput


def read_numbers(key: str, written: str, most: int, wanted: str) -> dict[str, int]:
    """Numbers from 1 to `most` by container; the empty name stands for all.

    Raises BadInput, which says that the annotation must be as `wanted`.
    """
    if written.count(",") >= MAX_ITEMS:
        raise BadInput(f"annotation {key} may have at most {MAX_ITEMS} items")
    numbers: dict[str, int] = {}
    for item in split_list(written):
        name, named, number = item.rpartition("=")
        plain = number.isascii() and number.isdecimal() and len(number) <= len(str(most))
        if not (plain and 1 <= int(number) <= most):
            raise BadInput(f"annotation {key} must be {wanted}, got {quote(written)}")
        if name in numbers or (named and not name) or "" in numbers or (not named and numbers):
            raise BadInput(f"annotation {key} must be one number or one for each container, got {quote(written)}")
        numbers[name] = int(number)
    return numbers


def check_names(key: str, numbers: Mapping[str, int], containers: Iterable[str]) -> None:
    """Raises BadInput for a container that is not among those which request GPUs."""
    if unknown := sorted(numbers.keys() - {"", *containers}):
        raise BadInput(f"annotation {key}: container {quote(unknown[0])} requests no GPU; remove it")
