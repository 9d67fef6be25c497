"""Which MIG layouts a cluster allows, as HAMi and Volcano write it: `knownMigGeometries` and `migProfileAllowlist`.

HAMi's geometries are lists of profiles, Volcano's have a name as well. A geometry is what a GPU holds at most: of its
instances only those are made that pods ask. The numbers `core` and `memory` are the card's own, whatever is written; an
amount that no such instance can have is refused.
"""

import re
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from lamina.errors import BadInput
from lamina.model.mig_rules import MigRule, check_rule

Models = Annotated[tuple[str, ...], Meta(min_length=1, description="a list of models, at least one")]
Profile = Annotated[str, Meta(pattern=r"^\d+g\.\d+gb([+-][a-z.]+)?$", description="a MIG profile such as 1g.5gb")]
_SAME = {"7g.79gb": "7g.80gb"}
"""What Volcano's and HAMi's files call the whole of a card with 80 GB."""


class Instances(Struct, frozen=True, kw_only=True):
    """So many instances of a profile."""

    name: Profile
    count: Annotated[int, Meta(ge=1, le=8, description="a whole number from 1 to 8")]
    memory: Annotated[int, Meta(ge=1, description="a whole number of MiB")] | None = None
    core: Annotated[int, Meta(ge=1, le=100, description="a whole number from 1 to 100")] | None = None


class HamiGeometry(Struct, frozen=True, kw_only=True, rename="camel"):
    """The layouts that models may have."""

    models: Models
    allowed_geometries: Annotated[
        tuple[tuple[Instances, ...], ...], Meta(min_length=1, description="a list of lists of profiles, at least one")
    ]


class Group(Struct, frozen=True, kw_only=True):
    """A layout with a name."""

    group: str = ""
    geometries: Annotated[tuple[Instances, ...], Meta(min_length=1, description="a list of profiles, at least one")]


class VolcanoGeometry(Struct, frozen=True, kw_only=True, rename="camel"):
    """The layouts that models may have."""

    models: Models
    allowed_geometries: Annotated[
        tuple[Group, ...], Meta(min_length=1, description="a list of groups, each with a list geometries")
    ]


class AllowedProfiles(Struct, frozen=True, kw_only=True):
    """The profiles that models may have, in any layout."""

    models: Models
    profiles: Annotated[tuple[Profile, ...], Meta(min_length=1, description="a list of profiles, at least one")]


def rules(
    hami: Iterable[HamiGeometry], volcano: Iterable[VolcanoGeometry], allowed: Iterable[AllowedProfiles]
) -> tuple[MigRule, ...]:
    """What of all that holds: geometries before lists of profiles."""
    named = [(each.models, each.allowed_geometries) for each in hami]
    named += [(each.models, tuple(group.geometries for group in each.allowed_geometries)) for each in volcano]
    found = [_rule(models, layouts) for models, layouts in named]
    found += [MigRule(models=each.models, profiles=tuple(map(_known, each.profiles))) for each in allowed]
    return tuple(found)


def check(rule: MigRule, where: str) -> None:
    """Raises BadInput where a card of the rule has no such layout, with what it has."""
    try:
        check_rule(rule)
    except BadInput as problem:
        raise BadInput(f"{where}: {', '.join(rule.models)}: {problem}") from problem


def check_amounts(geometries: Iterable[HamiGeometry | VolcanoGeometry], where: str) -> None:
    """Raises BadInput where the memory of a profile is more than its name says."""
    for each in geometries:
        for layout in each.allowed_geometries:
            for instances in layout.geometries if isinstance(layout, Group) else layout:
                gigabytes = int(re.findall(r"\d+", instances.name)[1])
                if instances.memory is not None and instances.memory > gigabytes * 1024:
                    raise BadInput(
                        f"{where}: {', '.join(each.models)}: {instances.name} has the memory {instances.memory}; "
                        f"allowed is at most {gigabytes * 1024}"
                    )


def _rule(models: tuple[str, ...], layouts: tuple[tuple[Instances, ...], ...]) -> MigRule:
    counts = []
    for layout in layouts:
        sums: dict[str, int] = {}
        for instances in layout:
            sums[_known(instances.name)] = sums.get(_known(instances.name), 0) + instances.count
        counts.append(tuple(sums.items()))
    return MigRule(
        models=models,
        profiles=tuple(dict.fromkeys(name for layout in counts for name, _ in layout)),
        layouts=tuple(counts),
    )


def _known(name: str) -> str:
    return _SAME.get(name, name)
