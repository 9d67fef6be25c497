"""DeviceTaintRules that keep claims from devices which Lamina offers, or evict the pods that have them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lamina.dra.selectors import selects
from lamina.dra.slices import digest_of
from lamina.placement.hosts.selection import written
from lamina.ports.kube import DEVICE_TAINT_RULES, RESOURCE_SLICES, Kube, NotFound, Object, Refused

_NO_EFFECT = "None"
"""The effect of a rule that only tells what it would do."""
_SHOWN_NODES = 5
_SHOWN_RULES = 5


class TaintingRule(NamedTuple):
    """A rule and its taint, with the devices that it taints by node."""

    name: str
    taint: str
    devices: Mapping[str, int]

    @property
    def sentence(self) -> str:
        count = sum(self.devices.values())
        nodes = sorted(self.devices)
        more = len(nodes) - _SHOWN_NODES
        shown = ", ".join(nodes[:_SHOWN_NODES]) + (f" and {more} more" if more > 0 else "")
        return (
            f"DeviceTaintRule {self.name} taints {count} device{'' if count == 1 else 's'} of {shown} with {self.taint}"
        )


async def read_rules(kube: Kube) -> list[Object]:
    """All rules; none where the server has no such kind, or where they may not be read."""
    try:
        return (await kube.list(DEVICE_TAINT_RULES)).items
    except (NotFound, Refused):
        return []


async def taint_lines(kube: Kube, pods: Iterable[Object]) -> list[str]:
    """Lines about the rules that may keep these pods waiting. Those without claims, or on a node, wait for none."""
    if not any((pod["spec"].get("resourceClaims") and not pod["spec"].get("nodeName")) for pod in pods):
        return []
    rules = await read_rules(kube)
    try:
        slices = (await kube.list(RESOURCE_SLICES)).items if rules else []
    except (NotFound, Refused):
        return []
    sentences = [f"  {rule.sentence}" for rule in tainting(rules, slices)]
    if (more := len(sentences) - _SHOWN_RULES) > 0:
        return [*sentences[:_SHOWN_RULES], f"  {more} more rule{' taints' if more == 1 else 's taint'} devices"]
    return sentences


def tainting(rules: Iterable[Object], slices: Iterable[Object]) -> Iterator[TaintingRule]:
    """The rules that taint devices in slices of Lamina."""
    devices = [device for each in slices if digest_of(each) for device in _devices(each)]
    for rule in sorted(rules, key=lambda rule: str(rule["metadata"]["name"])):
        taint = rule["spec"].get("taint") or {}
        counts = Counter(device["node"] for device in devices if selects(rule, device))
        if counts and taint.get("effect") != _NO_EFFECT:
            yield TaintingRule(rule["metadata"]["name"], written(taint), counts)


def _devices(found: Object) -> Iterator[Mapping[str, Any]]:
    spec = found["spec"]
    for device in spec.get("devices") or ():
        pool = spec["pool"]["name"]
        yield {"driver": spec["driver"], "pool": pool, "device": device["name"], "node": spec.get("nodeName") or pool}
