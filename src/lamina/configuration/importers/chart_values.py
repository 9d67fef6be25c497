"""A file of values of another chart: of 4paradigm's vGPU scheduler, HAMi, NVIDIA's device plugin or Volcano's.

Values that are keys of the configuration are kept, or moved to where they are. Files of devices that some charts have
among their values are read as such. Each other value that says something is answered as `lamina install` answers it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from lamina.configuration.importers import devices, nvidia_plugin
from lamina.configuration.importers.tables import by_answer, join, put
from lamina.configuration.importers.unversioned import CHART
from lamina.configuration.importers.values_of_others import CONVERTED, OF_CONFIGURATION, REPLACED
from lamina.configuration.yaml_documents import load_mapping

MOVED = {
    "scheduler.overwriteEnv": "hami.overwriteEnv",
    "scheduler.defaultGPUNum": "hami.defaultGPUNum",
    "scheduler.defaultSchedulerPolicy.nodeSchedulerPolicy": "hami.nodeSchedulerPolicy",
    "scheduler.defaultSchedulerPolicy.gpuSchedulerPolicy": "hami.gpuSchedulerPolicy",
    "devicePlugin.preConfiguredDeviceMemory": "hami.preConfiguredDeviceMemory",
    "devicePlugin.defaultMem": "hami.defaultMemory",
    "devicePlugin.defaultDeviceMemory": "hami.defaultMemory",
    "devicePlugin.defaultCores": "hami.defaultCores",
    "devicePlugin.enableNumaTopology": "hami.enableNumaTopology",
    "devicePlugin.nvidiaNodeSelector": "devicePlugin.nvidianodeSelector",
    "devices.nvidia.gpuCorePolicy": "hami.gpuCorePolicy",
    "devices.nvidia.libCudaLogLevel": "hami.libCudaLogLevel",
    "deviceSplitCount": "hami.deviceSplitCount",
    "deviceMemoryScaling": "hami.deviceMemoryScaling",
    "deviceCoresScaling": "hami.deviceCoreScaling",
    "migStrategy": "mig.strategy",
    "config.default": "nativeDevices.default",
    "config.fallbackStrategies": "nativeDevices.fallbacks",
    "nodeConfig.configs": "nodeconfig",
}
"""Values of the other charts that 4paradigm's does not have, and the keys that they set."""
_DEFAULTS = {"config.fallbackStrategies": ["named", "single"]}
"""Defaults of theirs that are worth no key: ours does more, and never less."""
_SWITCHES = {"true": True, "false": False}
OTHER_DEVICES = re.compile(r"(metax|enflame|kunlun|kunlunxin|vastai|biren|iluvatar|ascend)(s|310P)?[A-Z]\w*")
_ROWS = REPLACED | CONVERTED
_NESTED = {path.partition(".")[0] for path in (*_ROWS, *MOVED) if "." in path} - CHART.keys()


def is_meant(document: Mapping[str, Any]) -> bool:
    """Whether a document has values besides keys of the configuration."""
    return any(_answer(section, key) or section in _NESTED for section, key, _ in _values(document))


def read(document: Mapping[str, Any], name: str, where: str) -> tuple[dict[str, Any], list[str]]:
    """The keys of the configuration, and notes about other values. Those without an answer stay, to be refused."""
    rest = deepcopy(dict(document))
    kept: dict[str, Any] = {}
    notes: list[str] = []
    answered: dict[str, str] = {}
    for found, answers in _files(rest, where):
        join(kept, found, f"{where}: ")
        notes += answers
    for path, ours in MOVED.items():
        value = _take(rest, path)
        if not _says_nothing(value) and value != _DEFAULTS.get(path):
            put(kept, ours, _SWITCHES.get(value, value) if isinstance(value, str) else value)
    for section, key, value in _values(rest):
        if answer := _answer(section, key):
            answered |= {} if _says_nothing(value) else answer
        else:
            join(kept, {section: {key: value}} if section else {key: value}, f"{where}: ")
    return kept, [*notes, *by_answer(answered)]


def _files(rest: dict[str, Any], where: str) -> Iterator[tuple[dict[str, Any], Iterable[str]]]:
    """What files among the values say, and their notes. They are taken out of `rest`."""
    by_name = _take(rest, "config.map")
    for name, text in (by_name if isinstance(by_name, dict) else {}).items():
        here = f"{where}, config.map.{name}"
        yield nvidia_plugin.read(_file(text, here), str(name), here)
    for path in ("device-config.content", "deviceConfig"):
        here = f"{where}, {path}"
        if devices.is_meant(file := _file(_take(rest, path), here)):
            yield devices.read(file, "", here)
    path = "devicePlugin.nodeConfiguration.config"
    yield _file(_take(rest, path), f"{where}, {path}"), ()


def _file(value: Any, where: str) -> dict[str, Any]:
    """The mapping in a text, or the value where it is one already."""
    if isinstance(value, str):
        return load_mapping(value, where)
    return value if isinstance(value, dict) else {}


def _values(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The section, the key in it, and the value. Values outside of sections have none."""
    for key, value in document.items():
        if (key in CHART or key in _NESTED) and isinstance(value, dict):
            yield from ((key, inner, found) for inner, found in value.items())
        else:
            yield "", key, value


def _answer(section: str, key: str) -> dict[str, str]:
    """The answer about a value by its row, empty for a key of the configuration and for a value without one.

    In sections with keys of the configuration, each value has its own row, since it could be a misspelled key.
    """
    path = f"{section}.{key}" if section else str(key)
    if path in OF_CONFIGURATION:
        return {}
    if not section and OTHER_DEVICES.fullmatch(path):
        return {path: _ROWS["devices"]}
    rows = (path, "" if section in CHART else section)
    return next(({row: _ROWS[row]} for row in rows if row in _ROWS), {})


def _take(document: dict[str, Any], path: str) -> Any:
    """The value at a path, taken out with the sections that have nothing else; None where there is none."""
    section, _, rest = path.partition(".")
    inside = document.get(section)
    if not rest:
        return document.pop(section, None)
    if not isinstance(inside, dict) or not inside:
        return None
    taken = _take(inside, rest)
    if not inside:
        del document[section]
    return taken


def _says_nothing(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_says_nothing, value.values()))
    return value in (None, "", False, [])
