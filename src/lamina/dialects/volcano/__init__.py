"""Volcano's vGPUs.

dialect          the names, and how the parts below make up the dialect
parser           a pod -> its request
pod_annotations  what bound pods carry
register         the annotation that lists a node's devices
metrics          those of Volcano's scheduler
"""

from lamina.dialects.volcano.dialect import VolcanoDialect

__all__ = ["VolcanoDialect"]
