"""Which children belong to a controller: those that name it as their controller and still match its selector.

A child that matches and has no controller is adopted; one of ours that no longer matches is let go, as people rely on
when they relabel a pod to look at it in peace.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lamina.lab.api.selectors import matches
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object


@dataclass(slots=True)
class Claims:
    """`owned` are ours already; `adopt` should get our reference, `release` should lose it."""

    owned: list[Object] = field(default_factory=list)
    adopt: list[Object] = field(default_factory=list)
    release: list[Object] = field(default_factory=list)


def claim(owner: Mapping[str, Any], children: Iterable[Object]) -> Claims:
    """Sort the children of the owner's namespace. An owner under deletion neither adopts nor releases."""
    selector = objects.spec(owner).get("selector")
    settled = objects.is_deleting(owner)
    claims = Claims()
    for child in children:
        reference = objects.controller(child)
        picked = matches(selector, dict(objects.labels(child)))
        if reference is not None and reference.get("uid") == objects.uid(owner):
            if picked or settled:
                claims.owned.append(child)
            else:
                claims.release.append(child)
        elif reference is None and picked and not settled and objects.is_active(child):
            claims.adopt.append(child)
    return claims


def adopted(child: Mapping[str, Any], reference: Mapping[str, Any]) -> list[Object]:
    """The child's ownerReferences with ours among them."""
    return [*(objects.meta(child).get("ownerReferences") or ()), dict(reference)]


def released(child: Mapping[str, Any], owner: Mapping[str, Any]) -> list[Object]:
    """The child's ownerReferences without ours."""
    references = objects.meta(child).get("ownerReferences") or ()
    return [dict(entry) for entry in references if entry.get("uid") != objects.uid(owner)]
