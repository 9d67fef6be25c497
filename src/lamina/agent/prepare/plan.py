"""What a set of devices needs before its container starts, as plain data.

A container with quotas gets a directory with its limits, the facade, the driver's libraries at a path that only the
facade uses, the variable by which NVIDIA's container runtime adds the GPUs, and the hook that mounts the facade over
the driver's files that come with them. A container with whole GPUs or MIG instances gets only the variable, and mounts
that say the same, because the driver itself limits it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from lamina.agent.containers import cdi
from lamina.agent.containers.cdi import Hook, Mount
from lamina.agent.containers.paths import HostPaths, folder_name, limited_mounts
from lamina.agent.mps.clients import NO_EDITS, ClientEdits
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.holdings import Bound, Instance, instance_of
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.errors import NotYet
from lamina.ports.files import Files

WriteLimits = Callable[[Path, ContainerGrant, tuple[Share, ...]], None]
"""Writes the limits and usage files of a container into its directory; the shares are in the order of their GPUs."""


class PodRef(NamedTuple):
    namespace: str
    name: str
    uid: str


class ContainerPlan(NamedTuple):
    """For one CDI name. `folder` is None for a container without limits."""

    container: ContainerGrant
    shares: tuple[Share, ...]
    bound: Bound
    folder: Path | None
    visible: str
    """What is visible to NVIDIA's runtime; if empty, the GPUs or MIG devices of the shares."""
    edits: ClientEdits
    mounts: tuple[Mount, ...]
    hooks: tuple[Hook, ...]

    def spec(self, name: str, devices: Mapping[Instance, str]) -> bytes:
        """The CDI spec. `devices` are the UUIDs of the MIG instances that were made for it."""
        instances = {share: instance_of(share) for share in self.shares}
        units = [devices.get(each, "") if each else share.gpu for share, each in instances.items()]
        visible = self.visible or ",".join(units)
        mounts = [*self.edits.mounts, *self.mounts, *cdi.device_mounts(visible)]
        return cdi.build_spec(name, {cdi.VISIBLE: visible, **self.edits.env}, mounts, self.hooks)


class PreparationPlan(NamedTuple):
    """First the record binds the `names`, then the directories are made, then the specs are written."""

    containers: dict[str, ContainerPlan]
    """By CDI name."""
    cdi: Path

    @property
    def names(self) -> dict[str, Bound]:
        return {name: plan.bound for name, plan in self.containers.items()}

    @property
    def folders(self) -> dict[Path, ContainerPlan]:
        return {plan.folder: plan for plan in self.containers.values() if plan.folder is not None}

    def specs(self, devices: Mapping[Instance, str]) -> dict[Path, bytes]:
        return {self.cdi / cdi.file_name(name): plan.spec(name, devices) for name, plan in self.containers.items()}


def make_plan(
    containers: Mapping[str, ContainerGrant],
    pod: PodRef,
    gpus: Mapping[str, ObservedGpu],
    paths: HostPaths,
    *,
    limited: bool = True,
    visible: str = "",
    edits: Mapping[str, ClientEdits] = {},
) -> PreparationPlan:
    """What to make, so that each CDI name gives its container's shares. Raises NotYet for a GPU that cannot be used.

    Containers without whole GPUs are limited to their shares, unless `limited` is false. `edits` are by CDI name.
    """
    plans = {}
    for name, container in containers.items():
        shares = sorted_shares(container, gpus)
        folder = paths.containers / folder_name(pod.uid, container.name)
        by_facade = limited and any(share.mode is not Mode.WHOLE and share.mig is None for share in shares)
        plans[name] = ContainerPlan(
            container=container,
            shares=shares,
            bound=Bound(
                namespace=pod.namespace,
                pod=pod.name,
                pod_uid=pod.uid,
                container=container.name,
                grant=structs.replace(container, shares=shares),
            ),
            folder=folder if by_facade else None,
            visible=visible,
            edits=edits.get(name, NO_EDITS),
            mounts=limited_mounts(folder, paths.driver, paths.libraries) if by_facade else (),
            hooks=(paths.libraries.hook(),) if by_facade else (),
        )
    return PreparationPlan(plans, paths.cdi)


def write_plan(
    plan: PreparationPlan, files: Files, write_limits: WriteLimits, devices: Mapping[Instance, str] = {}
) -> None:
    """Make the directories and specs of names that the record has. Raises Outside."""
    write_folders(plan.folders, files, write_limits)
    for path, content in plan.specs(devices).items():
        files.write(path, content)


def write_folders(folders: Mapping[Path, ContainerPlan], files: Files, write_limits: WriteLimits) -> None:
    """Make the directories of containers that do not run. Raises Outside."""
    for folder, container in folders.items():
        files.remove_tree(folder)
        files.make_folder(folder)
        write_limits(folder, container.container, container.shares)


def sorted_shares(container: ContainerGrant, gpus: Mapping[str, ObservedGpu]) -> tuple[Share, ...]:
    """The container's shares by the index of their GPUs and their places on them.

    Raises NotYet for a GPU that is missing or unhealthy, and for MIG instances together with other shares.
    """
    name = container.name
    if not container.shares:
        raise NotYet(f'container "{name}": the grant has no GPU for it')
    for share in container.shares:
        observed = gpus.get(share.gpu)
        if observed is None:
            raise NotYet(f'container "{name}": the granted {share.gpu} does not exist on this node')
        if not observed.healthy:
            raise NotYet(f'container "{name}": the granted {share.gpu} is unhealthy: {observed.reason}')
    if len({share.mode is Mode.MIG for share in container.shares}) > 1:
        raise NotYet(f'container "{name}": the grant mixes MIG instances with other shares')
    return tuple(
        sorted(container.shares, key=lambda share: (gpus[share.gpu].facts.index, share.mig.start if share.mig else 0))
    )
