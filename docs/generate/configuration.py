"""The page of the configuration and the page of imported keys, from the types that read them."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from docs.generate.fields import fields
from docs.generate.markdown import code, page, paragraph, sentence, table
from lamina.configuration.form import form
from lamina.configuration.importers import (
    chart_values,
    hami,
    nvidia_plugin,
    unversioned,
    values_of_others,
    volcano,
    volcano_scheduler,
)

_INTRODUCTION = """
One YAML document: the key `lamina.yaml` of the ConfigMap `lamina` in Lamina's namespace, values below `config` in
an installation, or a file for `--config`. Every field has a default, so a configuration only names what differs, as
those in `examples/configuration/v1alpha1` do.

`apiVersion`, the version of this form, and `kind` are required. Unknown fields are refused by name. The [JSON
schema](configuration.schema.json) is for editors. Documents without `apiVersion` are
[imported](configuration-imported.md). [Change the configuration](../how-to/upgrade.md#change-the-configuration) says
what happens when it changes.
"""
_IMPORTED = """
A document without `apiVersion` may have HAMi's keys, Volcano's and the values of 4paradigm's chart, and next to them
fields of [Lamina's own form](configuration.md) for what the others cannot say. The same setting twice with different
values is refused. `lamina config convert FILE` prints all of it in Lamina's own form.

It also takes [files of other systems](#files-of-other-systems) as those publish them, which have other keys.
"""
_PUBLISHED = """
`lamina config convert FILE` and `lamina config check FILE` take these files raw, in their ConfigMaps, as `kubectl get
configmap NAME -o yaml` prints those, and among other objects of a manifest. Lamina does not read them as a cluster's
configuration: what has no place in it is named once, by comments of the conversion.
"""
_FILES = (
    (
        "`version: v1` with `flags`, `sharing`",
        "NVIDIA's device plugin; a ConfigMap has one or several, by name",
        "`nativeDevices.configs`; a raw file is called default and applies to all nodes",
    ),
    (
        "`actions`, `tiers`",
        "`volcano-scheduler.conf` in `volcano-system/volcano-scheduler-configmap`",
        "`placement.nodePolicy`, `placement.gpuPolicy`",
    ),
    (
        "`nvidia`",
        "`device-config.yaml` in `kube-system/volcano-vgpu-device-config`, or in HAMi's `hami-scheduler-device`",
        "the section `volcano` or `hami`, by its keys",
    ),
    ("`nodeconfig`", "`config.json` in `kube-system/volcano-vgpu-node-config`, or HAMi's", "`nodeconfig`"),
    (
        "values of a chart",
        "4paradigm's vGPU scheduler, HAMi, NVIDIA's and Volcano's device plugins",
        "the [values](#4paradigms-chart) that are keys of the configuration, those below, and files among the values",
    ),
)
_UNREAD = """
`lamina doctor` names a ConfigMap of Volcano or HAMi that says more than the configuration in force.

### NVIDIA's file: keys that set nothing
"""
_SCHEDULER = """
### Volcano's scheduler: what takes the place of the rest

`deviceshare.SchedulePolicy` is taken. Other arguments of deviceshare are refused if they are not in this table. Plugins
and actions that are not in it have no counterpart.
"""
_VALUES = """
### Values of other charts: what takes their place

The values of [4paradigm's chart](#4paradigms-chart) above are keys of the configuration. `lamina install` refuses those
below that are not values of Lamina's chart too, with the same answers.
"""
_PARADIGM = """
The values of 4paradigm's chart are read as they are spelled there, at the top of the file.
"""
_SECTIONS = (
    ("hami", "hami", hami.Hami),
    ("volcano", "volcano", volcano.Volcano),
    ("nodeconfig", "nodeconfig[]", hami.NodeConfig),
    ("nodeconfig[].filterdevices", "nodeconfig[].filterdevices", hami.FilterDevices),
)
STRUCTS = (unversioned.Document, *(struct for _, _, struct in _SECTIONS))
"""All types whose keys the page of imported keys lists."""


def pages() -> Iterator[tuple[str, str]]:
    yield "configuration.md", page("Configuration", "src/lamina/configuration", _INTRODUCTION, *_groups())
    yield "configuration.schema.json", _schema()
    parts = [_IMPORTED]
    for title, prefix, struct in _SECTIONS:
        about = paragraph((struct.__doc__ or "").split("\n\n")[0])
        parts += [f"## {title}", about, _table(struct, f"{prefix}.")]
    parts += ["## 4paradigm's chart", _PARADIGM, table(("chart", "is"), _of_chart())]
    parts += ["## Files of other systems", _PUBLISHED, table(("file", "where it is published", "becomes"), _FILES)]
    parts += [_UNREAD, table(("key", "why"), _answers(nvidia_plugin.IGNORED))]
    parts += [_SCHEDULER, table(("Volcano", "Lamina"), _of_scheduler())]
    parts += [_VALUES, table(("value", "Lamina"), _values())]
    yield (
        "configuration-imported.md",
        page("Imported configurations", "src/lamina/configuration/importers", *parts),
    )


def _schema() -> str:
    """The JSON schema, for editors and checks of files. From Python 3.13 on docstrings have no indentation."""
    schema = msgspec.json.encode(without_indentation(msgspec.json.schema(form().configuration)))
    return msgspec.json.format(schema, indent=2).decode() + "\n"


def without_indentation(node: Any) -> Any:
    """A part of a schema, its descriptions without the indentation of the source."""
    if isinstance(node, list):
        return [without_indentation(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: inspect.cleandoc(value) if key == "description" and isinstance(value, str) else without_indentation(value)
        for key, value in node.items()
    }


def _groups() -> Iterator[str]:
    """A section for each group of the Configuration, with a row for each field, except for what is required."""
    components = msgspec.json.schema_components([form().configuration])[1]
    for group in msgspec.structs.fields(form().configuration):
        schema = components["Configuration"]["properties"][group.encode_name]
        if group.required:
            continue
        yield f"## {group.encode_name}"
        yield paragraph(schema["description"])
        rows = list(_rows(components, schema, group.encode_name)) if "$ref" in schema else []
        if rows:
            yield table(("field", "meaning", "unit", "default", "reason for the default"), rows)
        elif "default" in schema:
            yield f"Default: {code(_json(schema['default']))}. {schema['x-reason']}"


def _rows(components: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[tuple[str, ...]]:
    group = components[schema["$ref"].removeprefix("#/$defs/")]
    for name, field in group["properties"].items():
        here = f"{path}.{name}"
        if "$ref" in field:
            yield from _rows(components, field, here)
            continue
        default = "required" if name in group["required"] else _default(field["default"])
        yield code(here), field["description"], field.get("x-unit", ""), default, field.get("x-reason", "")
        items = field.get("items", {})
        if "$ref" in items:
            yield from _rows(components, items, f"{here}[]")


def _default(value: Any) -> str:
    return "not set" if value is None else code(_json(value))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _table(struct: Any, prefix: str) -> str:
    rows = [
        (code(prefix + field.name), sentence(field.meaning), field.allowed, code(field.default))
        for field in fields(struct)
        if field.inner is None
    ]
    return table(("key", "meaning", "allowed", "default"), rows)


def _of_chart() -> Iterator[tuple[str, str]]:
    for section, keys in unversioned.CHART.items():
        for key in keys:
            yield code(f"{section}.{key.theirs}" if section else key.theirs), code(key.ours)


def _of_scheduler() -> Iterator[tuple[str, str]]:
    yield from _answers({f"action {name}": answer for name, answer in volcano_scheduler.ACTIONS.items()})
    yield from _answers({f"plugin {name}": answer for name, answer in volcano_scheduler.PLUGINS.items()})
    yield from _answers(volcano_scheduler.DEVICESHARE)


def _values() -> Iterator[tuple[str, str]]:
    """The values that become keys, and each answer once, after all values that have it."""
    yield from ((code(path), f"Is {code(ours)}") for path, ours in chart_values.MOVED.items())
    names: dict[str, list[str]] = {}
    for path, answer in (values_of_others.REPLACED | values_of_others.CONVERTED).items():
        if path not in chart_values.MOVED and path not in values_of_others.OF_CONFIGURATION:
            names.setdefault(answer, []).append(code(path))
    yield from ((", ".join(each), answer) for answer, each in names.items())


def _answers(answers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((code(name), answer) for name, answer in answers.items())
