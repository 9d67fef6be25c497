"""The configuration file of NVIDIA's device plugin, version v1.

document   the file as written: every key, and the values it may have
rules      from the file to the settings that follow from it, by NVIDIA's rules and in NVIDIA's messages
choice     which of several named files a node uses
"""

from lamina.configuration.nvidia.choice import FALLBACKS, choose
from lamina.configuration.nvidia.rules import NvidiaConfig, load

__all__ = ["FALLBACKS", "NvidiaConfig", "choose", "load"]
