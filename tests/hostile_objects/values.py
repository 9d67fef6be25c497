"""Values that the API server accepts, most of them unusual. All of them follow from the seed of `Random`."""

import json
from random import Random
from typing import Any

_PIECES = (
    *("a", "GPU-0", "1g.5gb", "0", "-1", "1e309", "NaN", "null", "~", "*", "&a", "!!", "{", "[[", '"', "'", "\\", "%s"),
    *(",", ";", ":", "/", "../", "\n", "\r", "\t", "\x00", "\x1b[2J", "\x85", "\u2028", "\u202e", "\ufeff", "\ufffd"),
    *("e\u0301", "\u0130", "\u00df", "\u0663", "\u4e2d", "\U0001f9ea", "\U0010ffff", "x" * 70),
)
COUNTS = ("0", "1", "2", "10", "100", "1k", "33", "1025", "2147483648", "9007199254740993", "9223372036854775807", "9E")
"""Quantities of extended resources, which are whole."""
AMOUNTS = (*COUNTS, "1m", "0.5", "1500m", "1e3", "1E3", "8Ei", "1Ki", "64Gi", "100n", "0.000000001", ".5", "5.", "+1")
"""Quantities of CPU and memory."""


def name(random: Random, longest: int = 63) -> str:
    """A name of an object, at times the longest."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    length = random.choice((6, 6, 6, longest))
    return "".join(random.choices(letters[:26], k=1) + random.choices(letters + "-", k=length - 2) + ["z"])


def text(random: Random, longest: int = 253) -> str:
    """Any text of at most so many characters."""
    found = "".join(random.choices(_PIECES, k=random.choice((0, 1, 1, 2, 8))))
    if found and not random.randrange(8):
        found *= longest // len(found)
    return found[:longest]


def document_text(random: Random, *sections: str) -> str:
    """A text that is no YAML document, or one of a shape that no configuration file has."""
    section = random.choice(sections)
    return random.choice(
        (
            f"{section}:\n",
            f"{section}: []",
            json.dumps({section: {text(random): text(random)}}),
            "[" * 3000,
            "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
            f"{section}: {{a: 10, a: 10}}",
            f"{section}: .nan",
            f"{section}: 99999999999999999999999",
            f"? [{section}]\n: 1",
            f"{section}: !!int x",
        )
    )


def sparse(random: Random, full: dict[str, Any], *needed: str) -> dict[str, Any]:
    """Some of the fields, and null or nothing in others. Those that are `needed` stay."""
    kept = {}
    for key, value in full.items():
        if key in needed or random.random() < 0.7:
            kept[key] = value
        elif random.random() < 0.3:
            kept[key] = random.choice((None, type(value)()))
    return kept
