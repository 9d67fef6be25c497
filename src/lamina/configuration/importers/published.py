"""Files of other systems as those publish them: raw, in a ConfigMap, or among the other objects of a manifest.

    version: v1, sharing, flags     a file of NVIDIA's device plugin; its ConfigMap has one or several, by name
    actions, tiers                  the configuration of Volcano's scheduler
    nvidia: {...}                   the device configuration of HAMi or of Volcano's device plugin
    nodeconfig: [...]               their settings of single nodes
    scheduler, devicePlugin, ...    the values of their charts

Each is turned into a document that `unversioned` reads. What has no counterpart is answered by name: by a note that
says what takes its place, or, where it could be a misspelled key, by a refusal. Lamina does not read these files as a
cluster's configuration, because notes would be lost there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lamina.configuration.config_map import text_in
from lamina.configuration.importers import chart_values, devices, nvidia_plugin, unversioned, volcano_scheduler
from lamina.configuration.importers.tables import join
from lamina.configuration.nvidia.choice import NAMED_DEFAULT
from lamina.configuration.text import load
from lamina.configuration.yaml_documents import load_documents, load_mapping
from lamina.core.component_names import API_VERSION
from lamina.core.config import CONFIG_MAP_KEY, Config
from lamina.errors import BadInput


class PublishedFile(NamedTuple):
    """What one file or object says. `document` is one without apiVersion."""

    title: str
    document: dict[str, Any]
    notes: tuple[str, ...] = ()


class Conversion(NamedTuple):
    """A configuration, and notes about what it does and what has no place in it.

    `titles` name the files of other systems; without one, Lamina reads the text as it stands.
    """

    config: Config
    titles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Form(NamedTuple):
    title: str
    is_meant: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any], str, str], tuple[dict[str, Any], Iterable[str]]]
    """From the document, its name and where it stands to one without apiVersion, and notes."""


FORMS = (
    _Form("a file of NVIDIA's device plugin", nvidia_plugin.is_meant, nvidia_plugin.read),
    _Form("a configuration of Volcano's scheduler", volcano_scheduler.is_meant, volcano_scheduler.read),
    _Form("a device configuration", devices.is_meant, devices.read),
    _Form("values of another chart", chart_values.is_meant, chart_values.read),
)


def convert(text: str, where: str) -> Conversion:
    """The configuration that a file stands for. Raises BadInput with one sentence; nothing is converted in part."""
    documents = [each for each in load_documents(text, where) if each is not None]
    if any(not isinstance(each, dict) or _is_ours(each) for each in documents):
        return Conversion(load(_own_text(documents, text), where))
    parts = [part for each in documents for part in _parts(each, where)]
    titles = tuple(part.title for part in parts if part.title)
    if not titles and len(documents) > 1 and all("kind" in each for each in documents):
        raise BadInput(f"{where}: none of its {len(documents)} objects is a ConfigMap with a configuration")
    if not titles:
        return Conversion(load(text, where))
    merged: dict[str, Any] = {}
    for part in parts:
        join(merged, part.document, f"{where}: ")
    notes = tuple(dict.fromkeys(" ".join(note.split()) for part in parts for note in part.notes))
    return Conversion(unversioned.read(merged, where), titles, notes)


def _is_ours(document: Mapping[str, Any]) -> bool:
    """Whether it is Lamina's own form, or the ConfigMap of a cluster with it."""
    return document.get("apiVersion") == API_VERSION or _is_our_config_map(document)


def _is_our_config_map(document: Mapping[str, Any]) -> bool:
    return document.get("kind") == "ConfigMap" and CONFIG_MAP_KEY in _mapping(document.get("data"))


def _own_text(documents: list[Any], text: str) -> str:
    if len(documents) == 1 and isinstance(documents[0], dict) and _is_our_config_map(documents[0]):
        return text_in(documents[0])
    return text


def _parts(document: Any, where: str) -> Iterator[PublishedFile]:
    document = _mapping(document)
    items = document.get("items")
    if document.get("kind") == "ConfigMap":
        yield from _in_config_map(document, where)
    elif document.get("kind") == "List" and isinstance(items, list):
        for each in items:
            yield from _parts(each, where)
    elif {"apiVersion", "kind"} & document.keys():
        note = "has no part in the configuration; the objects of `lamina install` take its place"
        yield PublishedFile("", {}, (f"{_name(document)} {note}",))
    else:
        yield _read(document, NAMED_DEFAULT, where, "")


def _in_config_map(document: Mapping[str, Any], where: str) -> Iterator[PublishedFile]:
    name = _name(document)
    for key, text in _mapping(document.get("data")).items():
        here = f"{where}, {name}, {key}"
        part = _read(load_mapping(str(text), here), str(key), here, f" in {name}, {key}")
        if "nativeDevices" in part.document:
            part = part._replace(notes=(*part.notes, nvidia_plugin.named_instead(_mapping(document.get("metadata")))))
        yield part if part.title else part._replace(title=f"a configuration in {name}, {key}")


def _read(document: Mapping[str, Any], name: str, where: str, place: str) -> PublishedFile:
    for form in FORMS:
        if form.is_meant(document):
            converted, notes = form.read(document, name, where)
            return PublishedFile(f"{form.title}{place}", converted, tuple(notes))
    return PublishedFile("", dict(document))


def _name(document: Mapping[str, Any]) -> str:
    meta = _mapping(document.get("metadata"))
    namespace = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{document.get('kind')} {namespace}{meta.get('name')}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
