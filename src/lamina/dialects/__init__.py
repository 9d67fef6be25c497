"""Dialects: the vocabularies of GPU-sharing systems in pod specifications, parsed into neutral requests. Pure.

One vocabulary is served, HAMi's, which is also 4paradigm's. Configuration is in `lamina.dialects.config`.
"""

from lamina.dialects.defaults import Fill, defaults, schedulers, unseen_by_admission
from lamina.dialects.hami import parse
from lamina.dialects.resources import ResourceNames, resource_names

__all__ = ["Fill", "ResourceNames", "defaults", "parse", "resource_names", "schedulers", "unseen_by_admission"]
