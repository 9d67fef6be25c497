"""What the controller and its admission process tell each other: one JSON object per line, over a pair of sockets.

The controller unpickles nothing: what the process sends is decoded into these types.
"""

from msgspec import Struct

from lamina.controller.admission.review import Demand

LONGEST_MESSAGE = 4 * 1024 * 1024
"""Bytes. A configuration is the largest: a ConfigMap has at most 1 MiB."""


class Configured(Struct, frozen=True, tag=True):
    """To the process: the configuration in force, pickled."""

    config: bytes


class Certified(Struct, frozen=True, tag=True):
    """To the process: what to serve from the next handshake on, as PEM."""

    certificate: bytes
    key: bytes


class Decided(Struct, frozen=True, tag=True):
    """To the process: the answer to the question of that number; `refusal` is a sentence or empty."""

    number: int
    refusal: str


class Ping(Struct, frozen=True, tag=True):
    """To the process, which answers it with Pong."""


class Finish(Struct, frozen=True, tag=True):
    """To the process: accept no more connections, answer what has been received, and end."""


class Asked(Struct, frozen=True, tag=True):
    """From the process: may this be admitted? Answered with Decided."""

    number: int
    demand: Demand


class Reviewed(Struct, frozen=True, tag=True):
    """From the process: a review has been answered, for the metrics."""

    allowed: bool
    seconds: float


class Pong(Struct, frozen=True, tag=True):
    """From the process: it still answers."""


ToProcess = Configured | Certified | Decided | Ping | Finish
FromProcess = Asked | Reviewed | Pong
