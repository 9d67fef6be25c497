"""The ResourceSlices of one node: its pool, in as few slices as the API allows.

All slices of a pool have the same generation. Consumers use only the highest one, and only once all of its slices are
there, so they never see a mixture. The generation grows only if something changed, which an annotation tells: the API
server completes what was written, so the written and the stored devices may differ.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lamina.dra.names import slice_name

MOST_DEVICES = 64
"""In one slice, if any of its devices has taints."""
DIGEST = "lamina.dev/devices"
"""The annotation with the hash of all devices of the pool."""

Device = Mapping[str, Any]
Slice = dict[str, Any]


def node_slices(
    node: str, driver: str, devices: Sequence[Device], published: Sequence[Mapping[str, Any]]
) -> list[Slice]:
    """The slices that the node should have. `published` are those that it has.

    If these say the same, all keep the generation, those that are missing included.
    """
    groups = [devices[at : at + MOST_DEVICES] for at in range(0, len(devices), MOST_DEVICES)] or [[]]
    digest = hashlib.sha256(json.dumps(list(devices), sort_keys=True).encode()).hexdigest()
    newest = max((generation(each) for each in published), default=0)
    current = [each for each in published if generation(each) == newest]
    same = bool(current) and all(digest_of(each) == digest for each in current)
    pool = {"name": node, "generation": newest if same else newest + 1, "resourceSliceCount": len(groups)}
    return [
        {
            "metadata": {"name": slice_name(node, driver, number), "annotations": {DIGEST: digest}},
            "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": list(group)},
        }
        for number, group in enumerate(groups)
    ]


def generation(found: Mapping[str, Any]) -> int:
    """The generation of the pool that a slice belongs to."""
    return int(found["spec"]["pool"]["generation"])


def digest_of(found: Mapping[str, Any]) -> str:
    """The hash of the devices that were written; empty for a slice of another program."""
    return str((found["metadata"].get("annotations") or {}).get(DIGEST, ""))
