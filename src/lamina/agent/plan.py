"""What has to be made for a set of tickets before its container starts, as plain data.

A container with quotas gets a folder with its limits, the facade, the driver's libraries where only the facade looks,
the variable by which NVIDIA's container runtime brings in the GPUs, and the hook that puts the facade over the driver's
files which came with them. A container with whole GPUs or MIG instances gets the variable and nothing else: the driver
itself holds it.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from lamina.agent import cdi
from lamina.agent.cdi import Hook, Mount
from lamina.agent.health import GpuState
from lamina.agent.libraries import Libraries
from lamina.agent.mps import edits
from lamina.agent.mps.edits import Edits
from lamina.agent.record import Bound, Instance, Record
from lamina.errors import NotYet
from lamina.model.gpus import Mode
from lamina.model.grants import ContainerGrant, Share
from lamina.ports.files import Files

LIMITS, USAGE, ARBITER = "limits", "usage", "arbiter"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")


WriteLimits = Callable[[Path, ContainerGrant, tuple[Share, ...]], None]
"""Writes the limits and usage files of a container into its folder; the shares are in the order of their GPUs."""


class Places(NamedTuple):
    """Where things are made on the node."""

    containers: Path
    cdi: Path
    driver: Path
    libraries: Libraries


class Plan(NamedTuple):
    """`names` are bound first, then `folders` are made with the limits of a container, then `specs` are written."""

    names: dict[str, Bound]
    folders: dict[Path, ContainerGrant]
    specs: dict[Path, bytes]


def folder_name(pod_uid: str, container: str) -> str:
    """The name of a container's folder. Raises NotYet for what Kubernetes does not accept as names either."""
    for part in (pod_uid, container):
        if _SAFE.fullmatch(part) is None:
            raise NotYet(f"{part!r} is neither a pod's UID nor a container's name")
    return f"{pod_uid}_{container}"


def plan(
    containers: Mapping[str, ContainerGrant],
    *,
    namespace: str,
    pod: str,
    pod_uid: str,
    gpus: Mapping[str, GpuState],
    places: Places,
    held: bool = True,
    visible: str = "",
    more: Edits = edits.NONE,
    devices: Mapping[Instance, str] = {},
) -> Plan:
    """What to make, so that each name leads to its container's shares. Raises NotYet for a GPU that cannot be used.

    Containers that do not have whole GPUs are `held` to their shares, unless they are to have none but the GPU. What
    is `visible` to NVIDIA's runtime are their GPUs by UUID, unless it is said. All get `more`. `devices` are the UUIDs
    of the MIG instances that were made for grants, as far as they are there.
    """
    planned = Plan({}, {}, {})
    for name, container in containers.items():
        shares = in_order(container, gpus)
        instances = tuple(each for share in shares if (each := instance_of(share)) is not None)
        seen = [devices.get(each, "") for each in instances] or [share.gpu for share in shares]
        env = {cdi.VISIBLE: visible or ",".join(seen), **more.env}
        mounts = list(more.mounts)
        hooks: list[Hook] = []
        folder = places.containers / folder_name(pod_uid, container.name)
        if held and any(share.mode is not Mode.WHOLE and share.mig is None for share in shares):
            planned.folders[folder] = container
            mounts += _mounts(folder, places)
            hooks = [places.libraries.cover()]
        planned.names[name] = Bound(
            namespace=namespace,
            pod=pod,
            pod_uid=pod_uid,
            container=container.name,
            gpus=tuple(share.gpu for share in shares),
            mode=shares[0].mode,
            instances=instances,
        )
        planned.specs[places.cdi / cdi.file_name(name)] = cdi.spec(name, env, mounts, hooks)
    return planned


def execute(
    planned: Plan, gpus: Mapping[str, GpuState], record: Record, files: Files, write_limits: WriteLimits
) -> None:
    """Carry the plan out, the record first, so that it knows of everything before it is made. Raises Outside."""
    record.bind(planned.names)
    for folder, container in planned.folders.items():
        files.remove_tree(folder)
        files.make_folder(folder)
        write_limits(folder, container, in_order(container, gpus))
    for path, content in planned.specs.items():
        files.write(path, content)


def in_order(container: ContainerGrant, gpus: Mapping[str, GpuState]) -> tuple[Share, ...]:
    """The container's shares by the index of their GPUs and their places on them.

    Raises NotYet for a GPU that is missing or not healthy, and for MIG instances beside other shares.
    """
    if not container.shares:
        raise NotYet(f"the grant gives container {container.name} no GPU")
    for share in container.shares:
        state = gpus.get(share.gpu)
        if state is None:
            raise NotYet(f"the grant of container {container.name} names {share.gpu}, which this node does not have")
        if not state.healthy:
            raise NotYet(f"{share.gpu}, granted to container {container.name}, is not healthy: {state.reason}")
    if len({share.mode is Mode.MIG for share in container.shares}) > 1:
        raise NotYet(f"the grant gives container {container.name} MIG instances beside other shares")
    return tuple(
        sorted(container.shares, key=lambda each: (gpus[each.gpu].facts.index, each.mig.start if each.mig else 0))
    )


def instance_of(share: Share) -> Instance | None:
    """The MIG instance that a grant makes of a GPU; None for other shares."""
    return None if share.mig is None else Instance(gpu=share.gpu, profile=share.mig.profile, start=share.mig.start)


def _mounts(folder: Path, places: Places) -> list[Mount]:
    return [
        Mount(folder / LIMITS, f"/run/lamina/{LIMITS}"),
        Mount(folder / USAGE, f"/run/lamina/{USAGE}", writable=True),
        Mount(folder / ARBITER, f"/run/lamina/{ARBITER}"),
        Mount(places.driver, "/run/lamina-driver"),
        *places.libraries.mounts(),
    ]
