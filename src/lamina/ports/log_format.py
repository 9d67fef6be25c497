"""How each line of the log looks, in every process of a component.

A message may have what a tenant wrote: a name in a manifest, the answer of a program. It stays one line of bounded
length, so nothing in it can look like another line of the log or act on a terminal.
"""

import logging

MAX_MESSAGE = 4096
"""Characters of a message. The traceback of a defect, which follows its message, is not limited."""
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LineFormatter(logging.Formatter):
    """Formats each message as one line of printable characters. Others are escaped as in Python."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        message = record.message if len(record.message) <= MAX_MESSAGE else f"{record.message[:MAX_MESSAGE]}..."
        record.message = message if message.isprintable() else "".join(map(_escaped, message))
        return super().formatMessage(record)


def log_to_stderr(level: int | str) -> None:
    """Write the log of this process to standard error, from this level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level, handlers=[handler])


def _escaped(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]
