"""Running programs, and one sentence about those that fail."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class Unavailable(Exception):
    """The cluster cannot be had: one sentence says what is missing or failed."""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
    stdin: str = "",
) -> str:
    """Standard output. Raises Unavailable with the last lines of what a failing program said."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{words[0]} could not be run to its end: {error}") from error
    if done.returncode != 0:
        words = words[words.index("--") + 1 :] if "--" in words else words  # without how a sandbox was entered
        output = (done.stderr or done.stdout).strip().splitlines()[-8:]
        raise Unavailable(f"`{' '.join(words)[:300]}` ended with {done.returncode}: {' | '.join(output)}")
    return done.stdout
