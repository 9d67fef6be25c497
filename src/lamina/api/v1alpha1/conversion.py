"""Conversion between the wire types of this version and the types of `lamina.model`.

Readers take an object and raise BadInput if its spec cannot be read; writers return a spec as plain JSON values, which
compare equal to what the API server returns.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from lamina.api.v1alpha1 import grant as grants
from lamina.api.v1alpha1 import inventory as inventories
from lamina.errors import BadInput
from lamina.model.borrowers import DisplacedBorrower
from lamina.model.claims import HeldClaim
from lamina.model.gpus import ExistingMigInstance, Gpu, Inventory, MigDeviceCount, MigInstance, Mode, NativeResource
from lamina.model.grants import ComputePolicy, ContainerGrant, ContainerSize, Grant, Share
from lamina.model.idle import IdlePod
from lamina.model.mps import MpsDaemon, MpsState
from lamina.model.sharing import Strategy, TimeSlice
from lamina.model.sizes import AppliedSize
from lamina.model.survivors import Survivor

T = TypeVar("T")


def read_inventory(obj: Mapping[str, Any]) -> Inventory:
    """The inventory in an Inventory object. Raises BadInput for one that is unreadable or names another node."""
    name = obj["metadata"]["name"]
    wire = _decode(obj, inventories.Inventory, f"inventory {name}")
    if wire.node != name:
        raise BadInput(f"inventory {name}: spec.node must be the name of the inventory, got {wire.node}")
    return Inventory(
        node=wire.node,
        driver=wire.driver,
        gpus=tuple(_read_gpu(gpu) for gpu in wire.gpus),
        native_resources=tuple(
            NativeResource(native.resource, native.count, native.replicas, Strategy(native.sharing))
            for native in wire.native_resources
        ),
        tickets=wire.tickets,
        driver_limited=wire.driver_limited,
        mps=tuple(_read_mps_daemon(daemon) for daemon in wire.mps),
        mig_leftovers=wire.mig_leftovers,
        survivors=tuple(_read_survivor(survivor) for survivor in wire.survivors),
        confirmed_survivors=_confirmed(obj),
        resized=tuple(
            AppliedSize(**{name: getattr(each, name) for name in AppliedSize.__struct_fields__})
            for each in wire.resized
        ),
        idle=tuple(IdlePod(pod_uid=each.pod_uid, since=each.since) for each in wire.idle),
        displaced=tuple(DisplacedBorrower(pod_uid=each.pod_uid, since=each.since) for each in wire.displaced),
        claims=tuple(_read_claim(claim) for claim in wire.claims),
        mig_devices=tuple(
            MigDeviceCount(profile=each.profile, count=each.count, resource=each.resource, reason=each.reason)
            for each in wire.mig_devices
        ),
    )


def _confirmed(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """What the status says of survivors; nothing where there is no status yet, or an odd one."""
    found = (obj.get("status") or {}).get("survivors") or ()
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list | tuple) else ()


def write_inventory(inventory: Inventory) -> dict[str, Any]:
    """The spec of the Inventory object for an inventory."""
    wire = inventories.Inventory(
        node=inventory.node,
        driver=inventory.driver,
        gpus=tuple(_write_gpu(gpu) for gpu in inventory.gpus),
        native_resources=tuple(
            inventories.NativeResource(native.resource, native.count, native.replicas, native.sharing.value)
            for native in inventory.native_resources
        ),
        tickets=inventory.tickets,
        driver_limited=inventory.driver_limited,
        mps=tuple(_write_mps_daemon(daemon) for daemon in inventory.mps),
        mig_leftovers=inventory.mig_leftovers,
        survivors=tuple(_write_survivor(survivor) for survivor in inventory.survivors),
        resized=tuple(
            inventories.AppliedSize(**{name: getattr(each, name) for name in AppliedSize.__struct_fields__})
            for each in inventory.resized
        ),
        idle=tuple(inventories.IdlePod(pod_uid=each.pod_uid, since=each.since) for each in inventory.idle),
        displaced=tuple(
            inventories.DisplacedBorrower(pod_uid=each.pod_uid, since=each.since) for each in inventory.displaced
        ),
        claims=tuple(_write_claim(claim) for claim in inventory.claims),
        mig_devices=tuple(
            inventories.MigDeviceCount(
                profile=each.profile, count=each.count, resource=each.resource, reason=each.reason
            )
            for each in inventory.mig_devices
        ),
    )
    return _plain_json(wire)


def read_grant(obj: Mapping[str, Any]) -> Grant:
    """The grant in a Grant object. Raises BadInput for one that is unreadable."""
    meta = obj["metadata"]
    wire = _decode(obj, grants.Grant, f"grant {meta.get('namespace')}/{meta['name']}")
    return Grant(
        pod=wire.pod,
        pod_uid=wire.pod_uid,
        node=wire.node,
        dialect=wire.dialect,
        containers=tuple(_read_container(container) for container in wire.containers),
        revision=wire.revision,
    )


def write_grant(grant: Grant) -> dict[str, Any]:
    """The spec of the Grant object for a grant."""
    wire = grants.Grant(
        pod=grant.pod,
        pod_uid=grant.pod_uid,
        node=grant.node,
        dialect=grant.dialect,
        containers=tuple(_write_container(container) for container in grant.containers),
        revision=grant.revision,
    )
    return _plain_json(wire)


def _decode(obj: Mapping[str, Any], kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(obj.get("spec"), kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where} cannot be read: {error}") from error


def _plain_json(wire: msgspec.Struct) -> dict[str, Any]:
    spec: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(wire))
    return spec


def _read_gpu(wire: inventories.Gpu) -> Gpu:
    return Gpu(
        uuid=wire.uuid,
        index=wire.index,
        model=wire.model,
        memory_mib=wire.memory_mib,
        capacity_mib=wire.capacity_mib,
        cores_capacity=wire.cores_capacity,
        slots=wire.slots,
        mig_capable=wire.mig_capable,
        numa=wire.numa,
        minor=wire.minor,
        healthy=wire.healthy,
        reason=wire.reason,
        cordoned=wire.cordoned,
        links=wire.links,
        mode=Mode(wire.mode) if wire.mode else None,
        native_resource=wire.native_resource,
        modes=tuple(Mode(mode) for mode in wire.modes),
        mig_card=wire.mig_card,
        mig_enabled=wire.mig_enabled,
        instances=tuple(
            ExistingMigInstance(profile=instance.profile, start=instance.start, made=instance.made, used=instance.used)
            for instance in wire.instances
        ),
        time_slice=TimeSlice(wire.time_slice) if wire.time_slice else None,
        time_slice_failure=wire.time_slice_failure,
    )


def _write_gpu(gpu: Gpu) -> inventories.Gpu:
    return inventories.Gpu(
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory_mib=gpu.memory_mib,
        capacity_mib=gpu.capacity_mib,
        cores_capacity=gpu.cores_capacity,
        slots=gpu.slots,
        mig_capable=gpu.mig_capable,
        numa=gpu.numa,
        minor=gpu.minor,
        healthy=gpu.healthy,
        reason=gpu.reason,
        cordoned=gpu.cordoned,
        links=gpu.links,
        mode=gpu.mode.value if gpu.mode else None,
        native_resource=gpu.native_resource,
        modes=tuple(mode.value for mode in gpu.modes),
        mig_card=gpu.mig_card,
        mig_enabled=gpu.mig_enabled,
        instances=tuple(
            inventories.ExistingMigInstance(
                profile=instance.profile, start=instance.start, made=instance.made, used=instance.used
            )
            for instance in gpu.instances
        ),
        time_slice=gpu.time_slice.value if gpu.time_slice else None,
        time_slice_failure=gpu.time_slice_failure,
    )


def _read_mps_daemon(wire: inventories.MpsDaemon) -> MpsDaemon:
    return MpsDaemon(
        gpu=wire.gpu,
        state=MpsState(wire.state),
        reason=wire.reason,
        memory_mib=wire.memory_mib,
        threads_percent=wire.threads_percent,
        for_grants=wire.for_grants,
    )


def _write_mps_daemon(daemon: MpsDaemon) -> inventories.MpsDaemon:
    return inventories.MpsDaemon(
        gpu=daemon.gpu,
        state=daemon.state.value,
        reason=daemon.reason,
        memory_mib=daemon.memory_mib,
        threads_percent=daemon.threads_percent,
        for_grants=daemon.for_grants,
    )


def _read_survivor(wire: inventories.Survivor) -> Survivor:
    return Survivor(
        namespace=wire.namespace,
        pod=wire.pod,
        pod_uid=wire.pod_uid,
        containers=tuple(_read_container(container) for container in wire.containers),
    )


def _write_survivor(survivor: Survivor) -> inventories.Survivor:
    return inventories.Survivor(
        namespace=survivor.namespace,
        pod=survivor.pod,
        pod_uid=survivor.pod_uid,
        containers=tuple(_write_container(container) for container in survivor.containers),
    )


def _read_claim(wire: inventories.HeldClaim) -> HeldClaim:
    requests = tuple(_read_container(request) for request in wire.requests)
    return HeldClaim(namespace=wire.namespace, name=wire.name, uid=wire.uid, requests=requests)


def _write_claim(claim: HeldClaim) -> inventories.HeldClaim:
    requests = tuple(_write_container(request) for request in claim.requests)
    return inventories.HeldClaim(namespace=claim.namespace, name=claim.name, uid=claim.uid, requests=requests)


def _read_container(wire: grants.ContainerGrant) -> ContainerGrant:
    return ContainerGrant(
        name=wire.name,
        shares=tuple(_read_share(share) for share in wire.shares),
        init=wire.init,
        sidecar=wire.sidecar,
        priority=wire.priority,
        oversubscribed=wire.oversubscribed,
        log_level=wire.log_level,
        because=wire.because,
        size=_read_size(wire.size) if wire.size else None,
    )


def _write_container(container: ContainerGrant) -> grants.ContainerGrant:
    return grants.ContainerGrant(
        name=container.name,
        shares=tuple(_write_share(share) for share in container.shares),
        init=container.init,
        sidecar=container.sidecar,
        priority=container.priority,
        oversubscribed=container.oversubscribed,
        log_level=container.log_level,
        because=container.because,
        size=_write_size(container.size) if container.size else None,
    )


def _read_size(wire: grants.ContainerSize) -> ContainerSize:
    return ContainerSize(generation=wire.generation, memory_mib=wire.memory_mib, cores=wire.cores)


def _write_size(size: ContainerSize) -> grants.ContainerSize:
    return grants.ContainerSize(generation=size.generation, memory_mib=size.memory_mib, cores=size.cores)


def _read_share(wire: grants.Share) -> Share:
    return Share(
        gpu=wire.gpu,
        memory_mib=wire.memory_mib,
        physical_mib=wire.physical_mib,
        most_memory_mib=wire.most_memory_mib,
        cores=wire.cores,
        most_cores=wire.most_cores,
        mode=Mode(wire.mode),
        exclusive=wire.exclusive,
        compute_policy=ComputePolicy(wire.compute_policy),
        most_sharers=wire.most_sharers,
        one_isolation=wire.one_isolation,
        mig=MigInstance(profile=wire.mig.profile, start=wire.mig.start) if wire.mig else None,
    )


def _write_share(share: Share) -> grants.Share:
    return grants.Share(
        gpu=share.gpu,
        memory_mib=share.memory_mib,
        physical_mib=share.physical_mib,
        most_memory_mib=share.most_memory_mib,
        cores=share.cores,
        most_cores=share.most_cores,
        mode=share.mode.value,
        exclusive=share.exclusive,
        compute_policy=share.compute_policy.value,
        most_sharers=share.most_sharers,
        one_isolation=share.one_isolation,
        mig=grants.GrantedMigInstance(profile=share.mig.profile, start=share.mig.start) if share.mig else None,
    )
