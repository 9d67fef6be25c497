"""Names of resources that belong to no dialect: another GPU-sharing system's, misspelled, or not about GPUs at all.

A name that looks like a dialect's and is not (`nvidia.com/gpu-mem`) is refused with the nearest known one: a silently
ignored limit would be a GPU without limit. Other systems have resources under the same prefixes; the configuration's
`otherResources` lists them.
"""

from fnmatch import fnmatchcase

from lamina.dialects.choices import list_options
from lamina.dialects.registry import NameIndex
from lamina.name_hints import closest

_SYSTEMS = {
    "volcano.sh/gpu-memory": "volcano-gpushare",
    "volcano.sh/gpu-number": "volcano-gpushare",
}
_SYSTEMS_BY_PREFIX = {
    "aliyun.com/gpu-": "gpushare",
    "tencent.com/vcuda-": "gpu-manager",
}
_PREFIXES = tuple(_SYSTEMS_BY_PREFIX)


def system_of(name: str) -> str:
    """The unsupported GPU-sharing system that the resource belongs to, or nothing."""
    if name.startswith(_PREFIXES):
        return next(system for prefix, system in _SYSTEMS_BY_PREFIX.items() if name.startswith(prefix))
    return _SYSTEMS.get(name, "")


def explain_unknown(name: str, index: NameIndex) -> str:
    """Why a resource that no dialect has is refused, or nothing where it is not about GPUs."""
    system = system_of(name)
    if system:
        written = (index.names[one.name].ticket for one in index.dialects if not one.annotation_prefixes)
        tickets = list_options(ticket for ticket in written if ticket)
        return f"{name} of the {system} dialect is not supported; use {tickets}"
    if name.startswith(index.guarded_prefixes) and not any(
        fnmatchcase(name, pattern) for pattern in index.config.dialects.other_resources
    ):
        return f"unknown resource {name}{_suggest(name, index)}"
    return ""


def _suggest(name: str, index: NameIndex) -> str:
    """The nearest known name. Compared are the parts after the slash, if there are any names with the same prefix."""
    prefix, _, part = name.partition("/")
    known = list(index.owners)
    parts = {other.partition("/")[2]: other for other in known if other.startswith(f"{prefix}/")}
    near = closest(part, parts) if parts else None
    return f"; did you mean {parts[near]}?" if near else f"; known resources are {', '.join(parts.values() or known)}"
