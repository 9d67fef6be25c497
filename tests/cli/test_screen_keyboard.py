"""Keys and clicks in what terminals send."""

import random

import pytest

from lamina.cli.screen.keyboard import Click, KeyReader


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("ab/", ["a", "b", "/"]),
        ("é模", ["é", "模"]),
        ("\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        ("\x1b[5~\x1b[6~\x1b[H\x1b[F", ["page up", "page down", "home", "end"]),
        ("\x1b", ["escape"]),
        ("\x1b\x1b", ["escape", "escape"]),
        ("\r\x7f\t\x0c\x15", ["enter", "erase", "tab", "ctrl-l", "erase all"]),
        ("\x1b[1;5Cq", ["q"]),
        ("\x1b[200~q", ["q"]),
        ("\x00\x01q", ["q"]),
        ("\x1b[<0;12;5M\x1b[<0;12;5m", [Click(11, 4)]),
        ("\x1b[<64;1;1M\x1b[<65;1;1M", ["wheel up", "wheel down"]),
        ("\x1b[<2;1;1M\x1b[<35;1;1M\x1b[<0;1M", []),
    ],
)
def test_keys_are_read_from_what_terminals_send(sent: str, keys: list[str | Click]) -> None:
    assert list(KeyReader().read(sent.encode())) == keys


@pytest.mark.parametrize("sent", ["\x1b[<0;12;5M", "\x1b[5~", "\x1bOA", "模"])
def test_a_sequence_may_come_in_pieces(sent: str) -> None:
    whole = list(KeyReader().read(sent.encode()))
    text = sent.encode()
    for cut in range(2 if text[:1] == b"\x1b" else 1, len(text)):
        reader = KeyReader()
        assert [*reader.read(text[:cut]), *reader.read(text[cut:])] == whole


def test_what_is_not_from_a_terminal_ends_too() -> None:
    noise, reader = random.Random(1), KeyReader()
    for _ in range(300):
        list(reader.read(noise.randbytes(64)))
    list(reader.read(b"\x1b[" + b"1" * 5000))
    assert list(reader.read(b"m\x1b"))[-1:] == ["escape"]
