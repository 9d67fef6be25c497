"""KAI Scheduler, Run:ai, and NVIDIA's fractions by container.

dialect      the names, and how the parts below make up the dialect
parser       a pod -> its request
annotations  the annotations by which pods request, and how each is read
"""

from lamina.dialects.kai.dialect import KaiDialect

__all__ = ["KaiDialect"]
