"""Checks between fields, which the types of single fields cannot express. Each raises BadInput."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lamina.configuration import nvidia
from lamina.core.mig_rules import MigRule, check_rule
from lamina.errors import BadInput


def check_names(names: Mapping[str, str], where: str) -> None:
    """Resource names, by the path of their field, must differ."""
    for path, name in names.items():
        twin = next((other for other, value in names.items() if value == name and other != path), None)
        if twin is not None:
            raise BadInput(f"{where}: {path} and {twin} must be different names, got {name} for both")


def check_modes(modes: Sequence[str] | None, path: str, where: str) -> None:
    """A list of modes must not contain a mode twice."""
    if modes is not None and len(set(modes)) < len(modes):
        raise BadInput(f"{where}: {path} must contain each mode once, got {modes[0]} twice")


def check_nodes(names: Sequence[str], path: str, where: str) -> None:
    """Each node must have one entry."""
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise BadInput(f"{where}: {path} must have one entry for each node, got two for node {repeated}")


def check_mig_rules(rules: Iterable[MigRule], where: str) -> None:
    """Each rule must be possible on a card that its models name."""
    for rule in rules:
        try:
            check_rule(rule)
        except BadInput as problem:
            raise BadInput(f"{where}: {', '.join(rule.models)}: {problem}") from problem


def check_native_configs(configs: Mapping[str, Any], path: str, where: str) -> None:
    """Named configurations must be files of version v1."""
    for name, written in configs.items():
        place = f"{where}: {path}.{name}"
        try:
            text = msgspec.json.encode(written).decode()
        except TypeError as problem:
            raise BadInput(f"{place} must only have strings as keys, as in a file with version: v1") from problem
        nvidia.load(text, place)
