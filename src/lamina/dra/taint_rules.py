"""Which devices a DeviceTaintRule is about, as in Kubernetes from 1.35 on."""

from collections.abc import Mapping
from typing import Any

_CRITERIA = ("driver", "pool", "device")


def selects(rule: Mapping[str, Any], device: Mapping[str, Any]) -> bool:
    """Whether a rule is about a device, given by its `driver`, `pool` and `device`.

    Any of the three may be missing in the selector. Without a selector a rule selects no device, with an empty one all.
    """
    selector = (rule.get("spec") or {}).get("deviceSelector")
    return selector is not None and all(selector.get(key) in (None, device.get(key)) for key in _CRITERIA)
