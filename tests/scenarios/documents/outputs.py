"""Whether two outputs are the same but for what is another at each run: dates, temperatures, identities, ages."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.scenarios.documents.steps import Prints

_VARYING = [
    (re.compile(pattern), word)
    for pattern, word in (
        (r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} +\d+ \d\d:\d\d:\d\d \d{4}\s*$", "DATE"),
        (r"\b(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", r"\1-UUID"),
        (r"\b[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.0\b", "BUS"),
        (r"\b\d+C +P\d+ +\d+W\b", "STATE"),
        (r"\bP\d+ +\d+W\b", "STATE"),
        (r"\b\d+%(?= +(Default|E\. Process))", "BUSY"),
        (r"(N/A +N/A +)\d+(?= +(C|M\+C) )", r"\1PID"),
        (r"-[a-z0-9]{8,10}-[a-z0-9]{5}\b", "-HASH"),
        (r"(\d+ +)(\d+[smhd])+\s*$", r"\1AGE"),
        (r"(gfd\.timestamp=)\d+", r"\1TIME"),
        (r"\s+", " "),
        (r",$", ""),
    )
]

_NO_TERMINAL = "Unable to use a TTY"
"""What kubectl says to a reader without a terminal."""

_CUT = re.compile(r"\.+(<snip>\.+)?")
"""How documents show that something is left out."""


def plain(text: str) -> list[str]:
    """The lines of an output, without those that are empty, and with words for what varies."""
    found = []
    for line in text.splitlines():
        line = "" if line.startswith(_NO_TERMINAL) or _CUT.fullmatch(line) else line.strip()
        for pattern, word in _VARYING:
            line = pattern.sub(word, line)
        if line:
            found.append(line)
    return found


class Comparison(NamedTuple):
    """Lines of the document that are not printed, and lines that are printed besides; words stand for what varies."""

    missing: list[str]
    besides: list[str]

    def unexplained(self, step: Prints) -> list[str]:
        """What the differences of the step do not explain."""
        return [
            *(f"- {line}" for line in self.missing if not _explained(line, step.differs)),
            *(f"+ {line}" for line in self.besides if step.whole and not _explained(line, step.more)),
        ]


def compare(document: str, printed: str) -> Comparison:
    expected, found = Counter(plain(document)), Counter(plain(printed))
    return Comparison(list((expected - found).elements()), list((found - expected).elements()))


def unused(step: Prints, found: Sequence[Comparison]) -> list[str]:
    """The differences of the step that do not show: the page would tell of something that is not so."""
    missing = [line for each in found for line in each.missing]
    besides = [line for each in found for line in each.besides]
    kept = [each for each in step.differs if not any(re.search(each, line) for line in missing)]
    return kept + [each for each in step.more if not any(re.search(each, line) for line in besides)]


def _explained(line: str, patterns: Mapping[str, str]) -> bool:
    return any(re.search(pattern, line) for pattern in patterns)
