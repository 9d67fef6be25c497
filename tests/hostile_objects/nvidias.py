"""Objects of NVIDIA that an agent reads: ConfigMaps of its device plugin and of mig-parted, and ClusterPolicies."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from lamina.configuration import DEFAULT, mig_parted
from lamina.configuration.nvidia.document import PluginConfig
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.ports.kube import Object
from tests.hostile_objects import values
from tests.hostile_objects.structures import expanded, structure

PLUGIN_CONFIG_MAP = "odd-plugin-configs"
NAMES = ("default", "a", "b")
"""Names of configurations in a ConfigMap; a label of a node may name another one too."""
MAX_DATA = 900_000
"""Bytes of a text. The API server takes 1 MiB of data in a ConfigMap."""
_PLUGIN_CONFIG = expanded(PluginConfig)
_PROFILES = ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb", "1g.5gb+me", "9g.900gb")
_COUNTS = (0, 1, 2, 7, 8, 1 << 31, 1 << 63, -1)
_POLICY_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "devicePlugin": {
            "type": "object",
            "properties": {
                "enabled": {"type": "boolean"},
                "config": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "default": {"type": "string"}},
                },
                "mps": {"type": "object", "properties": {"root": {"type": "string"}}},
            },
        },
        "mig": {
            "type": "object",
            "properties": {"strategy": {"type": "string", "enum": ["none", "single", "mixed"]}},
        },
    },
}
"""The part of NVIDIA's definition that is read."""


def plugin_configs(random: Random) -> Object:
    """The ConfigMap with files of NVIDIA's device plugin, valid ones and others."""
    data = {name: _text(random, _plugin_file) for name in random.sample(NAMES, random.choice((1, 2, 3)))}
    meta = {"name": PLUGIN_CONFIG_MAP, "namespace": DEFAULT.native_devices.config_map.namespace}
    return {"metadata": meta, **values.sparse(random, {"data": data})}


def mig_parted_configs(random: Random) -> Object:
    """The ConfigMap with the file of mig-parted."""
    meta = {"name": mig_parted.CONFIG_MAP, "namespace": DEFAULT_NAMESPACE}
    data = {mig_parted.CONFIG_MAP_KEY: _text(random, _mig_parted_file), values.name(random): values.text(random)}
    return {"metadata": meta, **values.sparse(random, {"data": data})}


def cluster_policy(random: Random) -> Object:
    """A ClusterPolicy that names the odd ConfigMap, another one, or none."""
    spec = structure(random, _POLICY_SCHEMA)
    config = (spec.get("devicePlugin") or {}).get("config")
    if config and random.randrange(3):
        config |= {"name": PLUGIN_CONFIG_MAP, "default": random.choice(("", *NAMES))}
    return {"metadata": {"name": random.choice(("cluster-policy", "odd-policy"))}, "spec": spec}


def _text(random: Random, file: Callable[[Random], Any]) -> str:
    """A file, or a text that is none, of at most the size that a ConfigMap may have."""
    found = random.choice(
        (
            lambda: json.dumps(file(random)),
            lambda: json.dumps(file(random)),
            lambda: values.document_text(random, "version", "sharing", "flags", "mig-configs"),
            lambda: values.text(random, MAX_DATA // 4),
        )
    )()
    return found.encode(errors="surrogatepass")[:MAX_DATA].decode(errors="ignore")


def _plugin_file(random: Random) -> Object:
    made: Object = structure(random, _PLUGIN_CONFIG)
    if random.randrange(3):
        made["version"] = "v1"
    return made


def _mig_parted_file(random: Random) -> Object:
    def devices() -> Any:
        return random.choice(("all", [0], [0, 1], [], [1 << 63], [-1], [0] * 2000, "none", None))

    def entry() -> Object:
        counts = {random.choice((*_PROFILES, values.text(random))): random.choice(_COUNTS) for _ in range(2)}
        full = {
            "devices": devices(),
            "mig-enabled": random.choice((True, True, False)),
            "mig-devices": counts,
            "device-filter": random.choice((["0x20B010DE"], "0x20f110DE", [], values.text(random))),
        }
        return values.sparse(random, full, "devices", "mig-enabled")

    named = {name: [entry() for _ in range(random.choice((0, 1, 1, 2, 500)))] for name in NAMES}
    return values.sparse(random, {"version": random.choice(("v1", "v1", "v2", 1)), "mig-configs": named}, "version")
