"""The device configuration of HAMi or of Volcano's device plugin, `device-config.yaml` in their ConfigMaps.

Both have a section `nvidia`. Volcano's copy has Volcano's resource names, named geometries and `gpuMemoryFactor`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import fields

from lamina.configuration.form import form
from lamina.configuration.importers import unversioned, volcano
from lamina.configuration.importers.tables import Key

_REPLACED = {
    "resourcePriorityName": "pods in Volcano's dialect have no priority by a resource; use PriorityClasses",
    "passDeviceSpecs": "agents hand out devices by CDI alone",
}
"""Keys of Volcano's device plugin besides the table."""


def is_meant(document: Mapping[str, Any]) -> bool:
    ours = {field.encode_name for kind in (form().configuration, unversioned.Document) for field in fields(kind)}
    return isinstance(document.get("nvidia"), dict) and not ours & document.keys()


def read(document: Mapping[str, Any], name: str, where: str) -> tuple[dict[str, Any], Iterator[str]]:
    """The section in our keys. Unknown keys are refused when that is read."""
    section = document["nvidia"]
    others = [key for key in document if key != "nvidia"]
    notes = [f"{key}: devices that are not NVIDIA's; Lamina leaves them alone" for key in others]
    if not _is_volcanos(section):
        return {"hami": section}, iter(notes)
    kept = {}
    table: dict[str, Key] = {key.theirs: key for key in volcano.KEYS}
    for key, value in section.items():
        row = table.get(key)
        if key in _REPLACED:
            notes += [f"nvidia.{key}: {_REPLACED[key]}"] if value else []
        elif row is not None and not row.ours and value != row.default:
            notes.append(f"nvidia.{key}: {value} is left out: {row.meaning}")
        else:
            kept[key] = value
    return {"volcano": kept}, iter(notes)


def _is_volcanos(section: Mapping[str, Any]) -> bool:
    names = [value for key, value in section.items() if str(key).startswith("resource")]
    known = section.get("knownMigGeometries")
    geometries = [each for entry in (known if isinstance(known, list) else ()) for each in _allowed(entry)]
    return (
        "gpuMemoryFactor" in section
        or any(str(name).startswith("volcano.sh/") for name in names)
        or any(isinstance(each, dict) for each in geometries)
    )


def _allowed(entry: Any) -> list[Any]:
    allowed = entry.get("allowedGeometries") if isinstance(entry, dict) else None
    return allowed if isinstance(allowed, list) else []
