"""What a probe says: one line of JSON with its facts."""

import json

from bench.gpu import programs
from bench.gpu.rows import Value
from lamina.errors import Outside

Facts = dict[str, Value]


def facts(code: int, said: str) -> Facts:
    """The facts in a program's output. Raises Outside when there are none."""
    if code != 0:
        raise Outside(f"it ended with {code}: {programs.last_line(said)}")
    try:
        found = json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise Outside(f"it printed no facts but {programs.last_line(said)!r}") from error
    if not isinstance(found, dict) or not found:
        raise Outside(f"it printed no facts but {programs.last_line(said)!r}")
    return found
