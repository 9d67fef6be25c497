"""Finds the keeper of a command again, by what it noted in a file before it started the command.

The file belongs to the user who started the keeper, and has to be where no tenant can write.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lamina.errors import Outside
from lamina.ports.kept_tree import keeper

_AGAIN_S = 0.02


def keeping(record: Path, command: Sequence[str]) -> tuple[str, ...]:
    """The command that runs `command` with its processes held by a keeper, which is noted in `record`."""
    return (sys.executable, "-I", "-S", str(Path(keeper.__file__)), str(record), *command)


class KeptTree:
    """The processes of the command that was started with this record. Every call raises Outside."""

    def __init__(self, record: Path) -> None:
        self._record = record

    @property
    def keeper(self) -> int | None:
        """The PID of the keeper; None if nothing is left of the command.

        A record of another boot, or of a PID namespace that is not this process's, is of processes that have ended with
        it, as far as this process can do something about them.
        """
        try:
            noted = self._record.read_text()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Outside(f"cannot read {self._record}: {error}") from error
        words = noted.split()
        if len(words) != 4 or not words[2].isdecimal():
            raise Outside(f"cannot read {self._record}: it does not name a process; end the processes of MPS yourself")
        return int(words[2]) if keeper.identity(int(words[2])) == noted else None

    async def end(self, within_s: float) -> None:
        """End all of its processes; none is well."""
        deadline = time.monotonic() + within_s
        while pid := self.keeper:
            if time.monotonic() > deadline:
                raise Outside(f"process {pid}, or what it started, does not end")
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise Outside(f"process {pid} cannot be ended: {error.strerror}") from error
            await asyncio.sleep(_AGAIN_S)
