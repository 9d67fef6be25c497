"""Dialects: the vocabularies of GPU-sharing systems in pod specifications, parsed into neutral requests. Pure.

Served are HAMi's, which is also 4paradigm's, Volcano's and that of Huawei CCE; `nvidia` reads the configuration of
NVIDIA's device plugin and knows the resources that pods only count. Configuration is in
`lamina.dialects.config`.
"""

from lamina.dialects.defaults import Fill, defaults, schedulers, unseen_by_admission
from lamina.dialects.parsing import parse
from lamina.dialects.templates import template_fills
from lamina.dialects.vocabularies import Vocabulary, hami, vocabularies

__all__ = [
    "Fill",
    "Vocabulary",
    "defaults",
    "hami",
    "parse",
    "schedulers",
    "template_fills",
    "unseen_by_admission",
    "vocabularies",
]
