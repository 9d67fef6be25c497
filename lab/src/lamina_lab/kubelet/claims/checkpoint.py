"""The node's claims on disk, so that a kubelet that was restarted unprepares what its predecessor prepared."""

from pathlib import Path

import msgspec

from lamina_lab.kubelet.claims.records import NodeClaim

FILE = "dra_manager_state"


def save(folder: Path, claims: dict[str, NodeClaim]) -> None:
    """Write the claims, by UID, to `folder` atomically."""
    fresh = folder / f".{FILE}"
    fresh.write_bytes(msgspec.json.encode(claims))
    fresh.replace(folder / FILE)


def load(folder: Path) -> dict[str, NodeClaim]:
    """The saved claims, none of them prepared: drivers are asked again after a restart.

    No claims if there is no file or it cannot be read.
    """
    try:
        claims = msgspec.json.decode((folder / FILE).read_bytes(), type=dict[str, NodeClaim])
    except (OSError, msgspec.MsgspecError):
        return {}
    for claim in claims.values():
        claim.prepared = False
    return claims
