"""Hints about misspelled names."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint such as "; did you mean x?", or nothing where no known name is close."""
    near = closest(name, known)
    return f"; did you mean {near}?" if near else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, whatever its capitals, or None where a guess would rather mislead."""
    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[close[0]] if close else None
