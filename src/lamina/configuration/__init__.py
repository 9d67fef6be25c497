"""The configuration of a cluster. Pure.

text        from a text to a Config, and back
config_map  the text in the cluster's ConfigMap, and the one in force while that is refused
form        the type of a Config, with the sections of all dialects
checks      checks between fields
importers   configurations that were written for other systems
strict      reading plain data into types, with errors for people
nvidia      the configuration file of NVIDIA's device plugin
mig_parted  the configuration file of NVIDIA's mig-parted
yaml_documents  the text of YAML documents as plain data

A text is read as a `lamina.core.config.Config`, through an importer if it has another form.
"""

from lamina.configuration.text import DEFAULT, load
from lamina.core.config import (
    CONFIG_MAP,
    CONFIG_MAP_KEY,
    Config,
    NodeSettings,
)

__all__ = [
    "CONFIG_MAP",
    "CONFIG_MAP_KEY",
    "DEFAULT",
    "Config",
    "NodeSettings",
    "load",
]
