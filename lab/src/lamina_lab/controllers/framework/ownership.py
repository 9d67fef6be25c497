"""Which children belong to a controller: those that reference it as their controller and match its selector.

A child that matches and has no controller is adopted. An owned child that no longer matches is released: people
relabel a pod to take it out of service and inspect it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.selectors import matches


class OwnedChildren(Struct):
    """`owned` already reference the owner; `adopt` should get a reference, `release` should lose it."""

    owned: list[Object] = field(default_factory=list)
    adopt: list[Object] = field(default_factory=list)
    release: list[Object] = field(default_factory=list)


def sort_children(owner: Mapping[str, Any], children: Iterable[Object]) -> OwnedChildren:
    """Sort the children in the owner's namespace. An owner that is being deleted neither adopts nor releases."""
    selector = objects.spec(owner).get("selector")
    settled = objects.is_deleting(owner)
    claims = OwnedChildren()
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


def references_with(child: Mapping[str, Any], reference: Mapping[str, Any]) -> list[Object]:
    """The child's ownerReferences with `reference` added."""
    return [*(objects.meta(child).get("ownerReferences") or ()), dict(reference)]


def references_without(child: Mapping[str, Any], owner: Mapping[str, Any]) -> list[Object]:
    """The child's ownerReferences without the owner's."""
    references = objects.meta(child).get("ownerReferences") or ()
    return [dict(entry) for entry in references if entry.get("uid") != objects.uid(owner)]
