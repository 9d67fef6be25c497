"""The smallest program that still shows a difference, by leaving out operations."""

from collections.abc import Callable

from tests.facade.differential.programs import Operation


def shrink(program: list[Operation], fails: Callable[[list[Operation]], bool]) -> list[Operation]:
    """`fails` says whether a program still shows it. What is left fails, and without any one operation does not."""
    size = max(len(program) // 2, 1)
    while size >= 1:
        at, smaller = len(program), False
        while at > 0:
            without = program[: max(at - size, 0)] + program[at:]
            if len(without) < len(program) and fails(without):
                program, smaller = without, True
            at -= size
        if not smaller or size > 1:
            size //= 2
    return program
