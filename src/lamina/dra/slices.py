"""The ResourceSlices of one node: its pool, in as few slices as the API allows.

All slices of a pool have the same generation. Consumers use only the highest one, and only once all of its slices are
there, so they never see a mixture. The generation grows only if something changed, which an annotation tells: the API
server completes what was written, so the written and the stored devices may differ.

Counters are in slices of their own, as Kubernetes wants it from 1.35 on.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lamina.dra.names import slice_name

MAX_DEVICES = 64
"""In one slice, if any of its devices has taints or takes counters."""
MAX_COUNTER_SETS = 8
"""In one slice."""
COUNTERS = "sharedCounters"
DIGEST = "lamina.dev/devices"
"""The annotation with the hash of all devices and counters of the pool."""

Device = Mapping[str, Any]
Slice = dict[str, Any]


def node_slices(
    node: str,
    driver: str,
    devices: Sequence[Device],
    published: Sequence[Mapping[str, Any]],
    counters: Sequence[Mapping[str, Any]] = (),
) -> list[Slice]:
    """The slices that the node should have, those with `counters` last. `published` are those that it has.

    If these say the same, all keep the generation, those that are missing included.
    """
    contents: list[dict[str, Any]] = [{"devices": group} for group in _groups(devices, MAX_DEVICES) or [[]]]
    contents += [{COUNTERS: group} for group in _groups(counters, MAX_COUNTER_SETS)]
    everything = [list(devices), list(counters)] if counters else list(devices)
    digest = hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()
    newest = max((generation(each) for each in published), default=0)
    current = [each for each in published if generation(each) == newest]
    same = bool(current) and all(digest_of(each) == digest for each in current)
    pool = {"name": node, "generation": newest if same else newest + 1, "resourceSliceCount": len(contents)}
    return [
        {
            "metadata": {"name": slice_name(node, driver, number), "annotations": {DIGEST: digest}},
            "spec": {"driver": driver, "nodeName": node, "pool": pool, **content},
        }
        for number, content in enumerate(contents)
    ]


def _groups(things: Sequence[Mapping[str, Any]], most: int) -> list[list[Mapping[str, Any]]]:
    return [list(things[at : at + most]) for at in range(0, len(things), most)]


def generation(found: Mapping[str, Any]) -> int:
    """The generation of the pool that a slice belongs to."""
    return int(found["spec"]["pool"]["generation"])


def digest_of(found: Mapping[str, Any]) -> str:
    """The hash of the devices that were written; empty for a slice of another program."""
    return str((found["metadata"].get("annotations") or {}).get(DIGEST, ""))
