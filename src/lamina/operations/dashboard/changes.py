"""What leads from one document to a later one.

A cluster of thousands of pods changes all the time, mostly in a few figures of each card, so only these are sent. A
page that has the earlier document makes the later one of it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures

Patch = Mapping[str, Any]
"""By field of a struct, its new value. Structs in a sequence of unchanged length have patches, by position."""


class Changes(Struct, frozen=True, kw_only=True):
    """Cards that are new as a whole, patches of those that differ, and None for what is gone."""

    cluster: ClusterFigures
    nodes: Mapping[str, Struct | Patch | None]
    pods: Mapping[str, Struct | Patch | None]


def changes(before: ClusterDocument, after: ClusterDocument) -> Changes:
    """What is new, different or gone."""
    return Changes(
        cluster=after.cluster, nodes=_changed(before.nodes, after.nodes), pods=_changed(before.pods, after.pods)
    )


def _changed(before: Mapping[str, Struct], after: Mapping[str, Struct]) -> dict[str, Struct | Patch | None]:
    found: dict[str, Struct | Patch | None] = dict.fromkeys(before.keys() - after.keys())
    for key, card in after.items():
        known = before.get(key)
        if known is card or known == card:
            continue
        found[key] = card if known is None else patch(known, card)
    return found


def patch(before: Struct, after: Struct) -> Patch:
    """What differs between two structs of one type."""
    found = {}
    for name in after.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old is not new and old != new:
            found[name] = _by_position(old, new) or new
    return found


def _by_position(old: Any, new: Any) -> dict[int, Patch]:
    """The patches of the items of two sequences of structs that are as long as each other; nothing for others."""
    if not (isinstance(new, tuple) and isinstance(old, tuple) and len(old) == len(new)):
        return {}
    if not all(isinstance(each, Struct) for each in new):
        return {}
    return {place: patch(*pair) for place, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]}
