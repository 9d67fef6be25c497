"""Each rule of sharing at its edge, for every way to ask whether one GPU takes one container."""

from lamina.core.ledger import Taken
from lamina.core.quota_room import QuotaLimit, QuotaRoom
from lamina.core.requests import SharingRules
from lamina.placement import Cause
from tests.placement.nodes import ask

IDLE = Taken()
LIGHT = Taken(1, 100, 0)
WHOLE = Taken(1, 32768, 100, True)
NEARLY_ALL, ONE_ISOLATION, AT_MOST_3 = (
    SharingRules(alone_below_mib=128),
    SharingRules(one_isolation=True),
    SharingRules(most=3),
)

ROOM = QuotaRoom(QuotaLimit("q", "gpumem", 1000, 400), QuotaLimit("q", "gpucores", 100, 40))
EDGES = [
    (ask(32768), IDLE, None),
    (ask(32769), IDLE, Cause.SIZE),
    (ask(32668), LIGHT, None),
    (ask(32669), LIGHT, Cause.MEMORY),
    (ask(percent=100), IDLE, None),
    (ask(percent=100), LIGHT, Cause.MEMORY),
    (ask(percent=99), LIGHT, None),
    (ask(1, 40), Taken(1, 1, 60), None),
    (ask(1, 41), Taken(1, 1, 60), Cause.CORES),
    (ask(1, 0), Taken(1, 1, 99), None),
    (ask(1, 0), Taken(2, 2, 100), Cause.TIME),
    (ask(1, 1), Taken(2, 2, 100), Cause.CORES),
    (ask(1, 100), IDLE, None),
    (ask(1, 100), LIGHT, Cause.NOT_IDLE),
    (ask(1, 99), LIGHT, None),
    (ask(1), Taken(9, 9, 0), None),
    (ask(1), Taken(10, 10, 0), Cause.SLOTS),
    (ask(), IDLE, None),
    (ask(), LIGHT, Cause.NOT_IDLE),
    (ask(), WHOLE, Cause.NOT_IDLE),
    (ask(1), WHOLE, Cause.HELD),
    (ask(1), Taken(1, 1, 0, True), Cause.HELD),
    (ask(1), Taken(12, 90000, 300), Cause.SLOTS),
    (ask(1, 101), IDLE, Cause.SIZE),
    (ask(32640, sharing=NEARLY_ALL), LIGHT, None),
    (ask(32641, sharing=NEARLY_ALL), LIGHT, Cause.NOT_IDLE),
    (ask(1, 1, sharing=ONE_ISOLATION), Taken(1, 1, 0, without_cores=True), Cause.ISOLATION),
    (ask(1, 0, sharing=ONE_ISOLATION), Taken(1, 1, 1), Cause.ISOLATION),
    (ask(1, 1, sharing=ONE_ISOLATION), Taken(1, 1, 1), None),
    (ask(1, sharing=AT_MOST_3), Taken(2, 2), None),
    (ask(1, sharing=AT_MOST_3), Taken(3, 3), Cause.SLOTS),
    (ask(600, 60, room=ROOM), IDLE, None),
    (ask(601, 60, room=ROOM), IDLE, Cause.QUOTA),
    (ask(600, 61, room=ROOM), IDLE, Cause.QUOTA),
]
"""A container, what others have of the GPU, and why the GPU does not take the container."""
