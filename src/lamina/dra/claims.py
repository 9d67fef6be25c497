"""An allocated claim: which devices of this node it has, how much of each, and for which request."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lamina.core.quantities import MIB, parse_quantity
from lamina.dra.names import CORES, MEMORY, base_request
from lamina.errors import BadInput, NotYet


class ClaimedDevice(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One result of an allocation. `request` is as allocated, with an alternative such as `gpu/small`.

    `memory_mib` is None for a device that is not shared; `cores` is 0 without a cap. `admin`: access without a share.
    """

    request: str
    device: str
    pool: str
    share_id: str = ""
    memory_mib: int | None = None
    cores: int = 0
    admin: bool = False


class AllocatedClaim(Struct, frozen=True, kw_only=True):
    """What the agent reads of a claim. `devices` are those of one driver and one pool."""

    namespace: str
    name: str
    uid: str
    devices: tuple[ClaimedDevice, ...]
    config: tuple[Mapping[str, Any], ...] = ()
    pods: tuple[str, ...] = ()
    """The names of the pods for which it is reserved."""
    pod_uids: tuple[str, ...] = ()

    @property
    def requests(self) -> dict[str, tuple[ClaimedDevice, ...]]:
        """The devices by the request that containers name."""
        found: dict[str, tuple[ClaimedDevice, ...]] = {}
        for device in self.devices:
            name = base_request(device.request)
            found[name] = (*found.get(name, ()), device)
        return found


def allocated(claim: Mapping[str, Any], driver: str, pool: str) -> list[Mapping[str, Any]]:
    """The results of the claim's allocation that are of this driver and pool."""
    results = _allocation(claim).get("results") or ()
    return [each for each in results if (each.get("driver"), each.get("pool")) == (driver, pool)]


def read_claim(claim: Mapping[str, Any], driver: str, pool: str) -> AllocatedClaim:
    """The claim with its devices of this driver and pool. Raises NotYet if it has none, BadInput if it is odd."""
    metadata, status = claim["metadata"], claim.get("status") or {}
    where = f"claim {metadata['namespace']}/{metadata['name']}"
    own = allocated(claim, driver, pool)
    if not own:
        raise NotYet(f"{where} has no device of {driver} on {pool}")
    pods = [each for each in status.get("reservedFor") or () if each.get("resource") == "pods"]
    return AllocatedClaim(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        devices=tuple(_device(each, where) for each in own),
        config=tuple(_allocation(claim).get("config") or ()),
        pods=tuple(each["name"] for each in pods),
        pod_uids=tuple(each["uid"] for each in pods),
    )


def _allocation(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    return ((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}


def _device(result: Mapping[str, Any], where: str) -> ClaimedDevice:
    admin = bool(result.get("adminAccess"))
    consumed = {} if admin else result.get("consumedCapacity") or {}
    return ClaimedDevice(
        request=result["request"],
        device=result["device"],
        pool=result["pool"],
        share_id=result.get("shareID") or "",
        memory_mib=_memory_mib(consumed[MEMORY], where) if MEMORY in consumed else None,
        cores=_cores(consumed.get(CORES, 0), where),
        admin=admin,
    )


def _memory_mib(written: Any, where: str) -> int:
    """Rounded down: a share never has more than was allocated."""
    amount = parse_quantity(written, where=f"{where}: consumedCapacity.{MEMORY}").value // MIB
    if amount < 1:
        raise BadInput(f"{where}: consumedCapacity.{MEMORY} must be at least 1Mi, got {written!r}")
    return int(amount)


def _cores(written: Any, where: str) -> int:
    amount = parse_quantity(written, where=f"{where}: consumedCapacity.{CORES}").whole
    if amount is None or not 0 <= amount <= 100:
        raise BadInput(f"{where}: consumedCapacity.{CORES} must be a whole number from 0 to 100, got {written!r}")
    return amount
