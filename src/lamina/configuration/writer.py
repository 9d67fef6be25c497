"""A Configuration as people write it: YAML that only names what differs from the defaults."""

from typing import Any

import msgspec
import yaml

from lamina.core.config import Config


def to_yaml(configuration: Config) -> str:
    """The text of a configuration, which is read as an equal one."""
    return "".join(_group(name, value) for name, value in _differences(configuration).items())


def _group(name: str, value: Any) -> str:
    """One line for a scalar; else a block, in which mappings and lists of scalars have one line."""
    flow = None if isinstance(value, dict | list) else False
    text: str = yaml.safe_dump({name: value}, sort_keys=False, default_flow_style=flow, width=110)
    return text


def _differences(written: msgspec.Struct) -> dict[str, Any]:
    """The fields that do not have their default."""
    return {
        field.encode_name: _plain(value)
        for field in msgspec.structs.fields(written)
        if (value := getattr(written, field.name)) != _default(field)
    }


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory() if callable(field.default_factory) else field.default


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _differences(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return msgspec.to_builtins(value)
