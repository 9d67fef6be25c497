"""How a benchmark ends: with the exit code of its measures, or in one sentence at Ctrl-C."""

import sys
from collections.abc import Callable
from typing import NoReturn

from lamina.cli.exit_codes import ExitCode


def end_with(main: Callable[[], int]) -> NoReturn:
    """Run a benchmark to its end. What it started ends with the contexts that it has opened."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("the benchmark was interrupted before it was done; nothing was written", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
