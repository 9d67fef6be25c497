"""The configuration of a cluster. Pure.

loader      from a text to a Config
config_map  the text in the cluster's ConfigMap, and the one in force while that is refused
form        the type of a Configuration, with the sections of all dialects
conversion  from a Configuration, as written, to a Config
writer      from a Configuration to a text
checks      checks between fields
importers   configurations that were written for other systems
strict      reading plain data into types, with errors for people
nvidia      the configuration file of NVIDIA's device plugin
mig_parted  the configuration file of NVIDIA's mig-parted
yaml_documents  the text of YAML documents as plain data

A text is read as `lamina.configuration.fields.Configuration`, through an importer if it has another form, and
converted to a `lamina.core.config.Config`.
"""

from lamina.configuration.loader import DEFAULT, load, read
from lamina.core.config import (
    CONFIG_MAP,
    CONFIG_MAP_KEY,
    CONFIG_MAP_NAMESPACE,
    Config,
    HealthRules,
    MemoryEnforcer,
    NodeSettings,
)

__all__ = [
    "CONFIG_MAP",
    "CONFIG_MAP_KEY",
    "CONFIG_MAP_NAMESPACE",
    "DEFAULT",
    "Config",
    "HealthRules",
    "MemoryEnforcer",
    "NodeSettings",
    "load",
    "read",
]
