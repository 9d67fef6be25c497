"""Texts as values of labels."""

import re

_LONGEST = 63


def value(text: str, suffix: str = "") -> str:
    """Text as a label's value, which may have 63 characters and begins and ends with a letter or digit."""
    allowed = re.sub(r"[^A-Za-z0-9-_. ]", "", text.strip()).replace(" ", "-")
    return allowed[: _LONGEST - len(suffix)].strip("-_.") + suffix
