"""What a ResourceQuota limits of GPU memory and compute, and what its status says of it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.core.config import Config
from lamina.core.quantities import parse_quantity
from lamina.dialects.registry import quota_names
from lamina.errors import BadInput


class QuotaLimits(NamedTuple):
    """The limits of one ResourceQuota, in MiB and percent; None where it sets none."""

    name: str
    memory_mib: int | None
    cores: int | None


def quota_limits(quota: Mapping[str, Any], config: Config) -> QuotaLimits:
    """What it limits. An amount that cannot be read allows nothing, as an explicit 0 does."""
    return _amounts(quota, (quota.get("spec") or {}).get("hard"), config, unreadable=0)


def quota_usage(quota: Mapping[str, Any], config: Config) -> QuotaLimits:
    """What its status says is used; None where it does not say it."""
    return _amounts(quota, (quota.get("status") or {}).get("used"), config, unreadable=None)


def _amounts(
    quota: Mapping[str, Any], written: Mapping[str, Any] | None, config: Config, *, unreadable: int | None
) -> QuotaLimits:
    names, amounts = quota_names(config), written or {}
    memory = _whole_number(amounts.get(f"limits.{names.memory}"), unreadable)
    cores = _whole_number(amounts.get(f"limits.{names.cores}"), unreadable)
    return QuotaLimits(quota["metadata"]["name"], None if memory is None else memory * names.memory_unit_mib, cores)


def _whole_number(quantity: object, unreadable: int | None) -> int | None:
    """The quantity rounded down."""
    if quantity is None:
        return None
    try:
        return max(0, int(parse_quantity(quantity, where="quota").value))
    except BadInput:
        return unreadable
