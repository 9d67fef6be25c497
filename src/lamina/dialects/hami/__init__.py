"""HAMi and 4paradigm's scheduler, its ancestor.

dialect          the names, and how the parts below make up the dialect
parser           a pod -> its request
fractions        `nvidia.com/gpu: 0.1`, in pods and in the templates of workloads
admission        the defaults that admission fills in
pod_annotations  what bound pods carry
register         the annotation that lists a node's devices
metrics          those of HAMi's monitor and scheduler
"""

from lamina.dialects.hami.dialect import HamiDialect

__all__ = ["HamiDialect"]
