"""The card's facts next to their bounds and to the simulated driver's facts."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from bench.gpu.rows import Fact, Row, Value

NO_ANSWER = "no answer"
NOT_TESTED = "not tested"
BUSY = 90.0
"""Percent of the GPU's time that a program without limits gets on an idle machine, at least."""


class Result(Struct, kw_only=True):
    """One line of the table."""

    part: str
    row: str
    fact: str
    unit: str = ""
    card: Value = None
    simulated: Value = None
    least: float | None = None
    most: float | None = None
    verdict: str
    """ok, FAILED (a bound is broken), reported (there is none), no answer (it failed), or not tested."""
    same: bool | None = None
    """Whether the simulated driver answered alike; None where they are not compared."""
    note: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether the simulated driver differs from the card."""
        return self.same is False

    @property
    def has_failed(self) -> bool:
        """Whether the test as a whole cannot pass with this."""
        return self.verdict in ("FAILED", NO_ANSWER)


def results(row: Row, card: Mapping[str, Value] | str, simulated: Mapping[str, Value] | str | None) -> list[Result]:
    """All facts of a row. A side that has none is a sentence that says why, or None if it was not asked."""
    if isinstance(card, str):
        return [unanswered(row.part, row.name, card)]
    other = simulated if isinstance(simulated, Mapping) else None
    found = [_result(row, row.fact(name), value, other) for name, value in card.items()]
    if isinstance(simulated, str):
        for result in found:
            result.note = f"simulated: {simulated}"
    found.extend(_only_simulated(row, card, other))
    return found


def unanswered(part: str, row: str, why: str) -> Result:
    """The line for what did not answer, or could not be tried."""
    verdict = NOT_TESTED if why.startswith((NOT_TESTED, "there was no time left")) else NO_ANSWER
    return Result(part=part, row=row, fact="", verdict=verdict, note=why.removeprefix(f"{NOT_TESTED}: "))


def _result(row: Row, fact: Fact, value: Value, simulated: Mapping[str, Value] | None) -> Result:
    result = Result(
        part=row.part,
        row=row.name,
        fact=fact.name,
        unit=fact.unit,
        card=value,
        least=fact.least,
        most=fact.most,
        verdict=_verdict(fact, value),
    )
    if simulated is not None:
        result.simulated = simulated.get(fact.name)
        if fact.within is not None:
            result.same = fact.name in simulated and alike(value, simulated[fact.name], fact.within)
    return result


def _verdict(fact: Fact, value: Value) -> str:
    if fact.least is None and fact.most is None:
        return "reported"
    if not isinstance(value, int | float):
        return "FAILED"
    low = fact.least is None or value >= fact.least
    high = fact.most is None or value <= fact.most
    return "ok" if low and high else "FAILED"


def without_starved(row: Row, found: list[Result], before: Sequence[Result]) -> list[Result]:
    """The results of a row, where too little is judged by the part of what programs without limits got: of what one
    got, or two at once. It is `not tested` for one program if that one did not keep the GPU busy."""
    free = [each.card for each in before if each.part == row.part and row.after and each.row == row.after]
    got = sum(share for share in free if isinstance(share, int | float))
    for result in found:
        if not free or result.verdict != "FAILED" or not _is_below(result.card, result.least):
            continue
        if len(free) == 1 and got < BUSY:
            result.verdict, result.note = NOT_TESTED, "the processors are too busy to feed the GPU, or others use it"
        else:
            who = "one program without limits gets" if len(free) == 1 else "as many programs without limits get"
            _judge_by_part(result, got, who)
    return found


def without_computed(row: Row, found: list[Result]) -> list[Result]:
    """The results of a row on a simulated GPU, where nothing is said about what kernels compute."""
    for result in found:
        if row.fact(result.fact).computed:
            result.verdict, result.note = NOT_TESTED, "kernels of simulated GPUs compute nothing"
    return found


def _judge_by_part(result: Result, got: float, who: str) -> None:
    least = (result.least or 0.0) * min(1.0, got / 100)
    result.note = f"{who} {got:.3g} %"
    if not _is_below(result.card, least):
        result.verdict, result.least = "ok", least


def _is_below(value: Value, bound: float | None) -> bool:
    return isinstance(value, int | float) and bound is not None and value < bound


def _only_simulated(row: Row, card: Mapping[str, Value], simulated: Mapping[str, Value] | None) -> Iterator[Result]:
    for name in simulated or ():
        if name not in card and row.fact(name).within is not None:
            yield Result(
                part=row.part, row=row.name, fact=name, verdict="reported", same=False,
                simulated=(simulated or {})[name], note="the card has no such answer",
            )  # fmt: skip


def alike(card: Value, simulated: Value, within: float) -> bool:
    """Whether two answers are the same, as far as they may differ."""
    numbers = (int, float)
    if within and isinstance(card, numbers) and isinstance(simulated, numbers):
        return abs(simulated - card) <= within * abs(card)
    return card == simulated
