"""What agents say of single pods. An agent speaks for the pods of its own node, and its word about others is not read.

A stolen token of one node's agent tells the UIDs of all pods. So these lists are not read as they are: a reader asks
about a pod, and gets what the node says that the pod's grant names.
"""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from msgspec import structs

from lamina.core.gpus import Inventory
from lamina.core.sizes import AppliedSize


class PodReport(NamedTuple):
    """What the agent of its node says of a pod; times are in seconds since 1970, None where it does not say that."""

    idle_since: int | None = None
    displaced_since: int | None = None
    sizes: Mapping[str, AppliedSize] = {}
    """By container."""
    driver_limited: frozenset[str] = frozenset()
    """The containers whose memory the driver limits too."""


_NOTHING = PodReport()
_OF_PODS = ("survivors", "resized", "idle", "displaced", "driver_limited")
"""The lists of an Inventory that concern single pods."""


class PodReports:
    """By node and by UID of the pod."""

    def __init__(self) -> None:
        self._nodes: dict[str, Mapping[str, PodReport]] = {}

    def publish(self, inventory: Inventory) -> None:
        """The agent of the node says this now, and no longer what it said before."""
        if reports := _reports(inventory):
            self._nodes[inventory.node] = reports
        else:
            self.remove(inventory.node)

    def remove(self, node: str) -> None:
        self._nodes.pop(node, None)

    def uids(self) -> Set[str]:
        """All pods that are named somewhere."""
        return {uid for reports in self._nodes.values() for uid in reports}

    def of(self, uid: str, node: str) -> PodReport:
        return self._nodes.get(node, {}).get(uid, _NOTHING)


def without_pods(inventory: Inventory) -> Inventory:
    """The inventory without the lists that concern single pods. Claims stay: they say which of its GPUs are in use.

    One without such lists stays the same object, so that what was made of it need not be made again.
    """
    if not any(getattr(inventory, name) for name in _OF_PODS):
        return inventory
    return structs.replace(inventory, **dict.fromkeys(_OF_PODS, ()))


def _reports(inventory: Inventory) -> dict[str, PodReport]:
    idle = {each.pod_uid: each.since for each in inventory.idle}
    displaced = {each.pod_uid: each.since for each in inventory.displaced}
    sizes: dict[str, dict[str, AppliedSize]] = {}
    for each in inventory.resized:
        sizes.setdefault(each.pod_uid, {})[each.container] = each
    limited = _by_pod(inventory.driver_limited)
    return {
        uid: PodReport(idle.get(uid), displaced.get(uid), sizes.get(uid, {}), limited.get(uid, frozenset()))
        for uid in idle.keys() | displaced.keys() | sizes.keys() | limited.keys()
    }


def _by_pod(containers: Iterable[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for each in containers:
        uid, _, name = each.partition("/")
        found.setdefault(uid, set()).add(name)
    return {uid: frozenset(names) for uid, names in found.items()}
