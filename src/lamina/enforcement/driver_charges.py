"""What containers are charged so that, in the long run, their accounts say what the driver says. Pure but for what it
remembers.

Accounts are made of estimates. Where the driver measures work, the difference between its figure and what an account
was charged in the same second is charged too, or refunded if it is negative. Figures come twice a second and are of a
whole one, so half of each difference counts. Work that is charged late makes one difference smaller and a later one as
much larger: what remains in sum is what was estimated wrongly.

What the driver says counts as far as it is possible: a container got all of the time in which it was alone, and no
more than the time in which it had work, or what it was charged if that is more. A driver that takes more or less time
for work than there is changes nothing for a container that is alone.

One figure charges no more than what the container may use in a second, so that none stops it for longer.

Example: a container was charged 300 ms in the last second, and the driver says that it worked for 40 percent of it. So
it is charged 50 ms. If it was charged 300 ms again half a second later, when the driver still says 40 percent, it is
charged another 50 ms. From then on it launches less, until its account agrees.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from lamina.enforcement.driver_figures import COVERED_NS, Confirmation, SlidingWindow, newest_figure, owner_of


class AccountState(Struct, frozen=True):
    """Of a container with this share: what it was charged less what was refunded, for how long it seemed to be alone,
    and for how long it had work, ever, in ns; what now counts of the time alone; and what the driver says of it."""

    name: str
    share: float
    net_ns: float
    alone_ns: float
    there_ns: float
    alone_factor: float
    confirmed: Confirmation | None

    def since(self, before: "AccountState") -> "AccountState":
        """What was added since then."""
        return structs.replace(
            self,
            net_ns=self.net_ns - before.net_ns,
            alone_ns=self.alone_ns - before.alone_ns,
            there_ns=self.there_ns - before.there_ns,
        )


class DriverCharges:
    """The differences of one GPU's containers."""

    def __init__(self) -> None:
        self._past: SlidingWindow[Mapping[str, AccountState]] = SlidingWindow()
        self._asked_at = 0
        self._charged: dict[str, float] = {}

    def charged(self, name: str) -> float:
        """What the differences of a container are in sum, in ns; negative if they are refunded."""
        return self._charged.get(name, 0.0)

    def observe(self, now: int, accounts: Sequence[AccountState], *, measured: bool) -> None:
        """Charge the differences from the driver's figures, where they are newer than before, and it measures work."""
        self._charged = {each.name: self.charged(each.name) for each in accounts}
        since, before = self._past.add(now, {each.name: each for each in accounts})
        asked_at = newest_figure(accounts)
        if asked_at <= self._asked_at:
            return
        passed = min(asked_at - self._asked_at, COVERED_NS)
        self._asked_at = asked_at
        if measured and now - since >= COVERED_NS and all(each.name in before for each in accounts):
            for together in _by_owner([each.since(before[each.name]) for each in accounts]):
                self._charge(together, now - since, passed)

    def _charge(self, together: Sequence[AccountState], ns: int, passed: int) -> None:
        """Charge the containers of one owner for what they did in the last `ns`."""
        confirmed = together[0].confirmed
        if confirmed is None or confirmed.work is None:
            return
        net = sum(each.net_ns for each in together)
        least = sum(each.alone_ns * each.alone_factor for each in together)
        most = max(net, sum(each.there_ns for each in together))
        difference = (min(max(confirmed.work * ns, least), most) - net) * passed / ns
        for each, part in zip(together, _parts([each.net_ns for each in together]), strict=True):
            limit = each.share * COVERED_NS
            self._charged[each.name] += max(-limit, min(limit, part * difference))


def _by_owner(accounts: Sequence[AccountState]) -> Sequence[Sequence[AccountState]]:
    found: dict[str, list[AccountState]] = {}
    for each in accounts:
        found.setdefault(owner_of(each), []).append(each)
    return list(found.values())


def _parts(net: Sequence[float]) -> Sequence[float]:
    """Which part of their difference each has: as much as it was charged, equal parts if none was."""
    positive = [max(0.0, each) for each in net]
    whole = sum(positive)
    return [each / whole if whole else 1 / len(net) for each in positive]
