"""A message of the log is one line of bounded length, whatever is in it."""

import io
import logging
from random import Random

from lamina.cli.service_options import MAX_MESSAGE, LineFormatter
from tests.hostile_objects import values


def written(message: str, error: Exception | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter())
    trace = error and (type(error), error, None)
    handler.handle(logging.LogRecord("lamina.test", logging.ERROR, __file__, 1, "%s", (message,), trace))
    return stream.getvalue()


def test_a_plain_message_stays_as_it_is() -> None:
    assert written("Käse of pod default/a: 100 %").endswith("ERROR lamina.test: Käse of pod default/a: 100 %\n")


def test_what_is_not_printable_is_escaped() -> None:
    line = written("a\n2026-01-01 INFO forged\r\x1b[2J\u202e\u2028\x00b")
    assert line.endswith(r": a\n2026-01-01 INFO forged\r\x1b[2J\u202e\u2028\x00b" + "\n")


def test_any_text_is_one_short_line() -> None:
    random = Random(1)
    for _ in range(300):
        line = written(values.text(random, 100_000))
        assert line.endswith("\n") and line[:-1].isprintable()
        assert len(line) < 10 * MAX_MESSAGE + 100


def test_a_traceback_follows_its_message() -> None:
    assert written("a\nb", ValueError("why")).endswith("a\\nb\nValueError: why\n")
