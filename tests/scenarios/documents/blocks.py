"""The blocks of text in fixed width of a document, in Markdown, HTML or reStructuredText."""

import html
import re
import textwrap

_BLOCK = re.compile(
    r"^```[^\n]*\n(?P<fenced>.*?)^``` *$"
    r"|^<pre><code[^>]*>\n(?P<html>.*?)</code></pre>"
    r"|^(?P<indent> *)\.\. code-block::\n\n(?P<literal>(?:(?:(?P=indent) +[^\n]*)?\n)+)",
    re.MULTILINE | re.DOTALL,
)
_PROMPT = re.compile(r"^(?:\(\w+\) )?(?:\[[^\]]*\]# |\S+@\S+[$#] |\$ )", re.MULTILINE)


def blocks(document: str) -> list[str]:
    """Every block in order, freed of what marks it."""
    return [_text(found).strip("\n") for found in _BLOCK.finditer(document)]


def _text(found: re.Match[str]) -> str:
    if found["fenced"] is not None:
        return found["fenced"]
    if found["html"] is not None:
        return html.unescape(found["html"])
    return textwrap.dedent(found["literal"])


def without_prompts(block: str) -> str:
    """The commands of a block."""
    return _PROMPT.sub("", block)


def exchanges(block: str) -> list[tuple[str, str]]:
    """The commands of a block that shows them with what they print; first "" with what stands before the first one."""
    starts = list(_PROMPT.finditer(block))
    ends = [each.start() for each in starts] + [len(block)]
    pairs = [block[each.end() : end].partition("\n") for each, end in zip(starts, ends[1:], strict=True)]
    return [("", block[: ends[0]]), *((command, printed) for command, _, printed in pairs)]
