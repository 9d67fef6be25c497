"""What a terminal may be sent: lines of printable characters, and no commands.

Tenants write names, annotations, manifests and what their programs print, and people look at these with the rights of
administrators. A terminal takes some characters for commands: to clear the screen, to set its title, to write from
right to left. They are shown as Python writes them, such as `\\x1b`, so that nothing is lost and nothing acts.
"""

import re

_WIDTHS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Characters that change how wide the one before them is on some terminals and not on others."""
_ENDS_OF_LINES = "\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"


def printable(text: str) -> str:
    """One line for a terminal. Other spaces are spaces, and everything else that is not printable is escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, _WIDTHS.sub("", text)))


def printable_lines(text: str) -> str:
    """The same for a text of several lines, which end with a line feed."""
    return text if text.isascii() and text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """A document in JSON whose strings mean the same as before, and have escapes of JSON in the place of these."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if each == "\n" or each.isprintable() else _in_json(each) for each in text)


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() and character not in _ENDS_OF_LINES else ascii(character)[1:-1]


def _in_json(character: str) -> str:
    """JSON escapes a character by its UTF-16 code units."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
