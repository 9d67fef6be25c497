"""All results as one page that needs no other file."""

from collections.abc import Mapping, Sequence
from html import escape

from bench.gpu.comparison import Result
from bench.gpu.rows import Value

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100%; margin-bottom: 2em }
th, td { text-align: left; padding: 0.2em 0.6em; border-bottom: 1px solid #ddd; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.bad { color: #b00020; font-weight: 600 } .finding { background: #fff4d6 } .quiet { color: #777 }
"""
HEADS = ("Row", "Fact", "Card", "Simulated", "Unit", "Bounds", "Verdict", "Note")


def page(about: Mapping[str, Value], results: Sequence[Result]) -> str:
    """HTML. What programs said is escaped."""
    findings = [result for result in results if result.is_finding]
    failed = [result for result in results if result.has_failed]
    parts = list(dict.fromkeys(result.part for result in results))
    about_rows = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(text(value))}</td></tr>" for key, value in about.items()
    )
    return "\n".join(
        (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>GPU test</title>',
            f"<style>{STYLE}</style></head><body><h1>GPU test</h1><table>{about_rows}</table>",
            f"<p>{summary(results)}</p>",
            _section("What failed", failed),
            _section("Where the simulated driver differs from the card", findings),
            *(_section(f"All rows: {part}", [each for each in results if each.part == part]) for part in parts),
            "</body></html>\n",
        )
    )


def summary(results: Sequence[Result]) -> str:
    """One line of counts."""
    failed = sum(result.has_failed for result in results)
    skipped = sum(result.verdict == "not tested" for result in results)
    findings = sum(result.is_finding for result in results)
    return f"{len(results)} facts: {failed} failed, {skipped} not tested, {findings} differ from the simulated driver"


def _section(title: str, results: Sequence[Result]) -> str:
    if not results:
        return f"<h2>{escape(title)}</h2><p class='quiet'>None.</p>"
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    return f"<h2>{escape(title)}</h2><table><tr>{heads}</tr>{''.join(map(_line, results))}</table>"


def _line(result: Result) -> str:
    shade = ' class="finding"' if result.is_finding else ""
    verdict = f'<td class="bad">{result.verdict}</td>' if result.has_failed else f"<td>{escape(result.verdict)}</td>"
    return (
        f"<tr{shade}><td>{escape(result.row)}</td><td>{escape(result.fact)}</td>"
        f'<td class="number">{escape(text(result.card))}</td><td class="number">{escape(text(result.simulated))}</td>'
        f"<td>{escape(result.unit)}</td><td>{bounds(result)}</td>{verdict}<td>{escape(result.note)}</td></tr>"
    )


def bounds(result: Result) -> str:
    """What the card has to keep."""
    low = "" if result.least is None else f"at least {result.least:g}"
    high = "" if result.most is None else f"at most {result.most:g}"
    return ", ".join(filter(None, (low, high)))


def text(value: Value) -> str:
    """A value as people read it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
