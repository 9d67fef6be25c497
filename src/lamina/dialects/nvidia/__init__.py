"""NVIDIA's device plugin: its configuration file of version v1, and the resources that pods count.

document   the file as it is written: every key, and what is allowed there
rules      the file -> what follows from it, by NVIDIA's rules and in its words
choice     which of several named files holds on a node
resources  the names by which pods ask for devices, replicas and MIG devices
"""

from lamina.dialects.nvidia.choice import FALLBACKS, choose
from lamina.dialects.nvidia.document import Gfd
from lamina.dialects.nvidia.rules import NvidiaConfig, load

__all__ = ["FALLBACKS", "Gfd", "NvidiaConfig", "choose", "load"]
