"""What is taken of each GPU: the sum of shares, counted as Kubernetes counts containers.

Ordinary init containers run one after another before the others, so a pod needs, on each GPU, the larger of what its
largest init container takes and what all containers that run at the same time take. Sidecars run with both.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lamina.core.claims import HeldClaim
from lamina.core.gpu_facts import Mode
from lamina.core.grants import ContainerGrant
from lamina.core.mig import Placed


class Taken(NamedTuple):
    """What is taken of one GPU: `slots` containers, `memory_mib` MiB, `cores` percent; `whole` if none may join.

    `without_cores` when one of them has no share of time, `one_isolation` when one shares the GPU only with containers
    that do as it does. `most` is the greatest number of containers that one of them allows on the GPU, 0 where the
    GPU's own slots are the limit. `instances` are the MIG instances that are granted: on a GPU that is cut, they
    and not the amounts are what others cannot have. `mps`: the containers are clients of MPS.
    """

    slots: int = 0
    memory_mib: int = 0
    cores: int = 0
    whole: bool = False
    without_cores: bool = False
    one_isolation: bool = False
    most: int = 0
    instances: tuple[Placed, ...] = ()
    mps: bool = False

    def plus(self, other: "Taken") -> "Taken":
        """Both at the same time."""
        return Taken(
            self.slots + other.slots,
            self.memory_mib + other.memory_mib,
            self.cores + other.cores,
            self.whole or other.whole,
            self.without_cores or other.without_cores,
            self.one_isolation or other.one_isolation,
            max(self.most, other.most),
            _all(self.instances, other.instances),
            self.mps or other.mps,
        )

    def less(self, part: "Taken") -> "Taken":
        """The amounts without a part that was counted in before; conditions cannot be taken out of a sum."""
        return Taken(self.slots - part.slots, self.memory_mib - part.memory_mib, self.cores - part.cores)

    def beyond(self, other: "Taken") -> "Taken":
        """What is left of this when others give up so much. Whole stays whole once they have given up everything."""
        return self._replace(
            slots=max(0, self.slots - other.slots),
            memory_mib=max(0, self.memory_mib - other.memory_mib),
            cores=max(0, self.cores - other.cores),
            whole=self.whole and other == NOTHING,
        )

    def at_least(self, other: "Taken") -> "Taken":
        """One after the other: the larger of each."""
        return Taken(
            max(self.slots, other.slots),
            max(self.memory_mib, other.memory_mib),
            max(self.cores, other.cores),
            self.whole or other.whole,
            self.without_cores or other.without_cores,
            self.one_isolation or other.one_isolation,
            max(self.most, other.most),
            _all(self.instances, other.instances),
            self.mps or other.mps,
        )


def _all(some: tuple[Placed, ...], others: tuple[Placed, ...]) -> tuple[Placed, ...]:
    """The instances of both. Containers of a pod that never run side by side may have the same one."""
    return tuple(sorted({*some, *others})) if some and others else some or others


NOTHING = Taken()


def add(totals: dict[str, Taken], more: Mapping[str, Taken]) -> None:
    """Count this much more, by GPU UUID."""
    for gpu, taken in more.items():
        totals[gpu] = totals[gpu].plus(taken) if gpu in totals else taken


def beyond(taken: Mapping[str, Taken], theirs: dict[str, Taken]) -> dict[str, Taken]:
    """What remains of a place, by GPU, when others give up `theirs`, from which what they give is then gone."""
    left = {}
    for gpu, wanted in taken.items():
        given = theirs.get(gpu, NOTHING)
        if any((rest := wanted.beyond(given))[:4]):  # not its conditions alone
            left[gpu] = rest
        theirs[gpu] = given.beyond(wanted)
    return left


def taken_by(containers: Iterable[ContainerGrant]) -> dict[str, Taken]:
    """What one pod's containers take, by GPU UUID."""
    running: dict[str, Taken] = {}
    starting: dict[str, Taken] = {}
    sidecars: dict[str, Taken] = {}
    for container in containers:
        for uuid, taken in _of_container(container).items():
            if container.sidecar:
                sidecars[uuid] = sidecars.get(uuid, NOTHING).plus(taken)
                running[uuid] = running.get(uuid, NOTHING).plus(taken)
            elif container.init:
                with_sidecars = sidecars.get(uuid, NOTHING).plus(taken)
                starting[uuid] = starting.get(uuid, NOTHING).at_least(with_sidecars)
            else:
                running[uuid] = running[uuid].plus(taken) if uuid in running else taken
    if not starting:
        return running
    return {uuid: running.get(uuid, NOTHING).at_least(starting.get(uuid, NOTHING)) for uuid in running | starting}


def taken_by_claims(claims: Iterable[HeldClaim]) -> dict[str, Taken]:
    """What the requests of claims take, by GPU UUID. All of them count at the same time."""
    return taken_by(request for claim in claims for request in claim.requests)


def amounts(taken: Iterable[Taken]) -> Taken:
    """The sums of amounts, without the conditions of single GPUs."""
    parts = list(taken)
    return Taken(
        slots=sum(part.slots for part in parts),
        memory_mib=sum(part.memory_mib for part in parts),
        cores=sum(part.cores for part in parts),
    )


def _of_container(container: ContainerGrant) -> dict[str, Taken]:
    taken: dict[str, Taken] = {}
    for share in container.shares:
        whole = share.exclusive or share.mode is Mode.WHOLE
        rules = share.one_isolation, share.most_sharers or 0
        instances = (Placed(share.mig.profile, share.mig.start),) if share.mig else ()
        mps = share.mode is Mode.MPS
        here = Taken(1, share.memory_mib, share.cores, whole, share.cores == 0, *rules, instances, mps)
        taken[share.gpu] = taken[share.gpu].plus(here) if share.gpu in taken else here
    return taken
