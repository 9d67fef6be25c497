"""Huawei CCE.

dialect   the names, and how the parts below make up the dialect
parser    a pod -> its request
metrics   those of CCE's plugin
"""

from lamina.dialects.cce.dialect import CceDialect

__all__ = ["CceDialect"]
