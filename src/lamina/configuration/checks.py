"""Checks between fields, which the types of single fields cannot express. Each raises BadInput."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lamina.configuration import nvidia
from lamina.core.config import Config
from lamina.core.field_types import Group
from lamina.core.mig_rules import MigRule, check_rule
from lamina.errors import BadInput


def checked(config: Config, where: str) -> Config:
    """The configuration, whose fields do not contradict each other."""
    check_names(
        {
            f"dialects.{dialect}.resources.{field.encode_name}": getattr(resources, field.name)
            for dialect, section in config.dialects.sections().items()
            if isinstance(resources := getattr(section, "resources", None), Group)
            for field in msgspec.structs.fields(resources)
        },
        where,
    )
    check_modes(config.sharing.modes, "sharing.modes", where)
    for number, node in enumerate(config.nodes.overrides):
        check_modes(node.modes, f"nodes.overrides[{number}].modes", where)
    check_nodes([node.name for node in config.nodes.overrides], "nodes.overrides", where)
    check_native_configs(config.native_devices.configs, "nativeDevices.configs", where)
    for number, rule in enumerate(config.mig.rules):
        if (rule.layouts is None) == (rule.profiles is None):
            raise BadInput(f"{where}: mig.rules[{number}] must have either layouts or profiles")
    check_mig_rules(config.mig_rules, where)
    return config


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
