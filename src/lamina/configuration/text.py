"""Configurations as texts: reading Lamina's own form or one that is imported, and writing it."""

from typing import Any

import msgspec
import yaml

from lamina.configuration import strict
from lamina.configuration.checks import checked
from lamina.configuration.form import form
from lamina.configuration.importers import unversioned
from lamina.configuration.yaml_documents import load_mapping
from lamina.core.component_names import API_VERSION
from lamina.core.config import KIND, Config
from lamina.errors import BadInput

DEFAULT = form().configuration(api_version=API_VERSION, kind=KIND)


def load(text: str, where: str) -> Config:
    """The configuration in `text` (YAML), imported if it has another form; an empty text is the default.

    `where` names it in errors. Raises BadInput with one sentence: what is wrong, in which field, and what is
    allowed. Nothing is applied in part.
    """
    return checked(_read(text, where), where)


def _read(text: str, where: str) -> Config:
    document: dict[str, Any] = load_mapping(text, where)
    if not {"apiVersion", "kind"} & document.keys():
        return unversioned.read(document, where)
    header = {key: document.get(key) for key in ("apiVersion", "kind")}
    if header != {"apiVersion": API_VERSION, "kind": KIND}:
        raise BadInput(
            f"{where}: apiVersion and kind must be {API_VERSION} and {KIND}, got {header['apiVersion']} and "
            f"{header['kind']}"
        )
    kind = form().configuration
    return strict.decode(strict.without_empty_keys(document, kind), kind, where)


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
