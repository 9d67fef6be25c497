"""Whether all records of shares on a cluster agree: a comparison of plain data.

The API server has grants and pods, the controller a ledger, kubelet its list of devices, the agent a record, folders
and CDI specs, and the kernel processes. `over_committed` finds what must never be seen. `disagreements` finds what
must disappear by itself while nothing changes; each has an `about`, which distinguishes one that stays from others
that come and go.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lamina.agent.inventory.native_devices import all_native, is_mig_device
from lamina.agent.state.holdings import Bound, Holding, Instance, PreparedClaim, instance_of
from lamina.core.gpus import BY_GRANT, Gpu, Mode
from lamina.core.grants import ContainerGrant, Grant
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.mig import Placed
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.quantities import MIB
from lamina.errors import BadInput
from lamina.ports.kubelet.allocations import Holder
from tests.cluster import claim_invariants


class Finding(NamedTuple):
    """A sentence, and what it is about."""

    about: str
    says: str


class Pod(NamedTuple):
    """`over`: all its containers have ended for good."""

    namespace: str
    name: str
    node: str
    over: bool = False


class Folder(NamedTuple):
    """A container's folder: what the files `limits` and `usage` say, each by GPU. `damage` tells why they cannot."""

    memory_bytes: Mapping[str, int] = {}
    cores: Mapping[str, int] = {}
    used_bytes: Mapping[str, int] = {}
    damage: str = ""


class Container(NamedTuple):
    """A container with processes that sees GPUs. `folder` is the one mounted in it, empty where none is. `held_mib` is
    what its processes hold by GPU, as the driver tells it, `busy_ns` the GPU time that they have used, `waited_ns` how
    long they were ready to run and had no core, and `at_work` how many of them have a context."""

    pod_uid: str
    id: str
    visible: tuple[str, ...]
    folder: str = ""
    held_mib: Mapping[str, int] = {}
    busy_ns: int = 0
    waited_ns: int = 0
    at_work: int = 0


class OnNode(NamedTuple):
    """`holders` is None where kubelet does not answer; `specs` are the devices that our CDI specs show, by name.

    Of MIG: `divided` are the GPUs whose MIG mode is on, `instances` the places of those that are there by the UUIDs of
    their devices, `noted` the places that the agent notes as made, `labelled` the GPUs that are cut as the node's label
    says. Of MPS: `served` are the GPUs with processes of a daemon, `kept` those with a daemon that the agent notes. Of
    ResourceClaims: `claims` are those that the agent notes as prepared, `claim_specs` the names of their CDI specs.
    """

    holders: tuple[Holder, ...] | None = ()
    allocations: tuple[Holding, ...] = ()
    specs: Mapping[str, tuple[str, ...]] = {}
    folders: Mapping[str, Folder] = {}
    containers: tuple[Container, ...] = ()
    divided: frozenset[str] = frozenset()
    instances: Mapping[str, Instance] = {}
    noted: frozenset[Instance] = frozenset()
    labelled: frozenset[str] = frozenset()
    served: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    claims: tuple[PreparedClaim, ...] = ()
    claim_specs: frozenset[str] = frozenset()

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Whom the record names."""
        return tuple(each.bound for each in self.allocations if each.bound)


class Observation(NamedTuple):
    """A cluster. `grants` were read first, so those whose pod lives were all there at one moment. Pods are keyed by
    UID, the ledger by GPU: shares, MiB, percent; None where no one answers for it. `claims` has the UIDs of
    ResourceClaims, with those of the pods for which they are reserved."""

    grants: tuple[Grant, ...]
    pods: Mapping[str, Pod]
    gpus: Mapping[str, tuple[Gpu, ...]]
    ledger: Mapping[str, tuple[int, int, int]] | None
    nodes: Mapping[str, OnNode]
    claims: Mapping[str, frozenset[str]] = {}

    def lives(self, uid: str) -> bool:
        return uid in self.pods and not self.pods[uid].over

    @property
    def living(self) -> tuple[Grant, ...]:
        """The grants of pods that have not ended."""
        return tuple(grant for grant in self.grants if self.lives(grant.pod_uid))


class Settling:
    """Tells what stays: which disagreements were found at every look for longer than `within_s` seconds."""

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._since: dict[str, float] = {}

    def stays(self, findings: Sequence[Finding], now: float) -> list[str]:
        """The sentences of those that do, after a look at the time `now` that found these."""
        found = {finding.about: finding.says for finding in findings}
        self._since = {about: self._since.get(about, now) for about in found}
        return [found[about] for about, since in self._since.items() if now - since > self._within_s]


def over_committed(observed: Observation) -> list[str]:
    """What no one may ever see: a GPU given away twice, or a container with more than its limits."""
    sentences = [
        message
        for node, gpus in observed.gpus.items()
        for gpu in gpus
        for message in _too_much(node, gpu, _on(observed, node, gpu))
    ]
    for name, node in observed.nodes.items():
        for container in node.containers:
            limits = node.folders.get(container.folder, Folder())
            sentences += [
                f"container {container.id[:12]} on {name} holds {mib} MiB of {gpu}, its limit is {most // MIB} MiB"
                for gpu, mib in container.held_mib.items()
                if (most := limits.memory_bytes.get(gpu)) is not None and mib * MIB > most
            ]
        sentences += [
            f"pods {' and '.join(sorted(pods))} on {name} see {device}"
            for device, pods in _pods_by_instance(observed, node).items()
            if len(pods) > 1
        ]
        in_use = {gpu for bound in node.bounds if observed.lives(bound.pod_uid) for gpu in bound.gpus}
        said = claim_invariants.too_much(node.claims, observed.gpus.get(name, ()), in_use)
        sentences += [f"{says}, on {name}" for says in said]
    return sentences


def _pods_by_instance(observed: Observation, node: OnNode) -> Mapping[str, set[str]]:
    """Those that live and have processes in containers with a MIG device that a grant gave, by its UUID."""
    granted = {each for bound in node.bounds for each in bound.instances}
    pods: dict[str, set[str]] = {}
    for container in node.containers:
        for device in container.visible if observed.lives(container.pod_uid) else ():
            if node.instances.get(device) in granted:
                pods.setdefault(device, set()).add(container.pod_uid)
    return pods


def _on(observed: Observation, node: str, gpu: Gpu) -> list[Grant]:
    return [grant for grant in observed.living if grant.node == node and _shares(grant, gpu.uuid)]


def _shares(grant: Grant, gpu: str) -> list[str]:
    return [share.mode for container in grant.containers for share in container.shares if share.gpu == gpu]


def _too_much(node: str, gpu: Gpu, grants: Sequence[Grant]) -> Iterator[str]:
    where = f"{gpu.uuid} of {node}"
    by_pod = [taken_by(grant.containers)[gpu.uuid] for grant in grants]
    taken = NOTHING
    for each in by_pod:
        taken = taken.plus(each)
    # A GPU of one container's own is in the same state as one that is shared by limits; `whole` keeps others off.
    states = {Mode.QUOTA if mode == Mode.WHOLE else mode for grant in grants for mode in _shares(grant, gpu.uuid)}
    modes = sorted(states)
    if len(modes) > 1:
        yield f"{where} is granted in the modes {' and '.join(modes)} at once"
    if modes == [Mode.MIG]:
        counted = Counter(placed for each in by_pod for placed in {*each.instances})
        yield from (f"{where}: {count} pods have {placed}" for placed, count in counted.items() if count > 1)
        yield from _overlapping(where, gpu, sorted(counted))
        return
    for message in _beyond(gpu, taken, alone=_alone(gpu.uuid, grants)):
        yield f"{where}: {message}, to {', '.join(sorted(grant.pod for grant in grants))}"


def _overlapping(where: str, gpu: Gpu, places: Sequence[Placed]) -> Iterator[str]:
    """Why these places cannot be on the card together. The largest are looked at first, as their places are few."""
    card = MIG_CARDS[gpu.mig_card]
    try:
        card.check(sorted(places, key=lambda placed: -card.profile(placed.profile).size))
    except BadInput as error:
        yield f"{where}: {error}"


def _alone(gpu: str, grants: Sequence[Grant]) -> bool:
    """Whether a container has the GPU as a whole. An init container may, and those that run after it share the GPU."""
    sets = [grant.containers for grant in grants]
    if len(sets) == 1:
        sets = [tuple(each for each in sets[0] if each.sidecar or not each.init)]
    return any(taken_by(containers).get(gpu, NOTHING).whole for containers in sets)


def _beyond(gpu: Gpu, taken: Taken, *, alone: bool) -> Iterator[str]:
    most = min(gpu.slots, taken.most or gpu.slots)
    for what, has, may in (
        ("MiB", taken.memory_mib, gpu.capacity_mib),
        ("percent of time", taken.cores, gpu.cores_capacity),
        ("shares", taken.slots, 1 if alone else most),
    ):
        if has > may:
            yield f"{has} {what} are granted, {may} may be"


def disagreements(observed: Observation) -> list[Finding]:
    """What does not agree, or has no one to belong to."""
    findings = [*_of_grants(observed), *_of_ledger(observed)]
    for name, node in observed.nodes.items():
        findings += [Finding(*found) for found in claim_invariants.gone(node.claims, observed.claims)]
        for look in (_of_record, _of_uses, _of_specs, _of_folders, _of_kubelet, _of_containers, _of_mig, _of_mps):
            findings += [Finding(f"{name}: {about}", f"{name}: {says}") for about, says in look(observed, name, node)]
    return findings


def _of_grants(observed: Observation) -> Iterator[Finding]:
    for grant in observed.grants:
        pod, about = observed.pods.get(grant.pod_uid), f"grant of {grant.pod_uid}"
        if pod is None:
            yield Finding(about, f"the grant of {grant.pod} ({grant.pod_uid}) stays behind its pod")
        elif pod.node != grant.node:
            yield Finding(about, f"the grant of {grant.pod} is for {grant.node}, the pod is on {pod.node or 'no node'}")
    for uid, count in Counter(grant.pod_uid for grant in observed.grants).items():
        if count > 1:
            yield Finding(f"grants of {uid}", f"the pod {uid} has {count} grants")


def _of_ledger(observed: Observation) -> Iterator[Finding]:
    if observed.ledger is None:
        return
    for node, gpus in observed.gpus.items():
        for gpu in gpus:
            taken = NOTHING
            for grant in _on(observed, node, gpu):
                taken = taken.plus(taken_by(grant.containers)[gpu.uuid])
            granted, counted = taken[:3], observed.ledger.get(gpu.uuid, (0, 0, 0))
            if granted != counted:
                message = "the ledger has (shares, MiB, percent) {} of {} on {}, the grants of living pods say {}"
                yield Finding(f"ledger of {gpu.uuid}", message.format(counted, gpu.uuid, node, granted))


def _of_record(observed: Observation, name: str, node: OnNode) -> Iterator[Finding]:
    listed = {(each.namespace, each.pod) for each in node.holders or ()}
    for each in node.allocations:
        if (bound := each.bound) is None:
            continue
        pod, about = observed.pods.get(bound.pod_uid), f"record of {bound.pod_uid} {bound.container}"
        who = f"{bound.container} of {bound.namespace}/{bound.pod} ({bound.pod_uid})"
        if pod is None:
            yield Finding(about, f"the record keeps {who}, whose pod is gone")
        elif pod.over:
            if node.holders is not None and (bound.namespace, bound.pod) not in listed:
                yield Finding(about, f"the record keeps {who}, whose pod has ended and is not listed by kubelet")
        elif pod.node != name:
            yield Finding(about, f"the record has {who}, whose pod is on {pod.node or 'no node'}")
        elif bound.mode in BY_GRANT and not _by_kubelet(each):
            granted = _granted(observed, bound)
            if granted is None:
                yield Finding(about, f"the record has {who}, which no grant names")
            elif {share.gpu for share in granted.shares} != {*bound.gpus}:
                yield Finding(about, f"the record gives {who} other GPUs than the grant")
            elif {place for share in granted.shares if (place := instance_of(share))} != {*bound.instances}:
                yield Finding(about, f"the record gives {who} other MIG instances than the grant")


def _by_kubelet(allocation: Holding) -> bool:
    """Whether its devices name GPUs, or parts of them, so that no grant has to."""
    return all_native(allocation.tickets)


def _of_uses(observed: Observation, name: str, node: OnNode) -> Iterator[Finding]:
    """A GPU is in one mode, and allocated by grants or by kubelet's own choice. What kubelet allocates as a whole has
    one pod."""
    uses: dict[str, set[str]] = {}
    alone: dict[str, set[str]] = {}
    for each in node.allocations:
        if each.bound is None or not observed.lives(each.bound.pod_uid):
            continue
        plain = _by_kubelet(each)
        mode = Mode.QUOTA if each.bound.mode is Mode.WHOLE and not plain else each.bound.mode
        for gpu in each.bound.gpus:
            uses.setdefault(gpu, set()).add(f"{mode} by {'kubelet' if plain else 'grants'}")
            if plain and mode is Mode.WHOLE:
                alone.setdefault(gpu, set()).add(each.bound.pod_uid)
    for gpu, found in uses.items():
        if len(found) > 1:
            yield Finding(f"mode of {gpu}", f"{gpu} is used as {' and '.join(sorted(found))} at once")
    for gpu, pods in alone.items():
        if len(pods) > 1:
            yield Finding(f"pods of {gpu}", f"{gpu} is given as a whole to {len(pods)} pods")


def _granted(observed: Observation, bound: Bound) -> ContainerGrant | None:
    mine = (each for grant in observed.grants if grant.pod_uid == bound.pod_uid for each in grant.containers)
    return next((each for each in mine if each.name == bound.container), None)


def _of_specs(observed: Observation, name: str, node: OnNode) -> Iterator[Finding]:
    bounds = {each.name: each.bound for each in node.allocations if each.bound}
    for spec, visible in node.specs.items():
        if spec in node.claim_specs:
            continue
        bound = bounds.get(spec)
        if bound is None:
            yield Finding(f"spec {spec}", f"no one owns the CDI spec {spec}")
        elif not _shows(visible, bound, node):
            yield Finding(
                f"spec {spec}", f"the CDI spec of {bound.container} of {bound.pod} shows other GPUs than its own"
            )


def _of_folders(observed: Observation, name: str, node: OnNode) -> Iterator[Finding]:
    bounds = {f"{b.pod_uid}_{b.container}": b for b in (each.bound for each in node.allocations) if b}
    for path, folder in node.folders.items():
        about, bound = f"folder {path}", bounds.get(path)
        if bound is None and not claim_invariants.owns(node.claims, path):
            yield Finding(about, f"no one owns the container folder {path}")
            continue
        if folder.damage:
            yield Finding(about, f"the folder {path} cannot be read: {folder.damage}")
            continue
        if bound and (granted := _granted(observed, bound)):
            memory = {share.gpu: share.memory_mib * MIB for share in granted.shares}
            cores = {share.gpu: share.cores for share in granted.shares}
            if (memory, cores) != (folder.memory_bytes, folder.cores):
                yield Finding(about, f"the limits in {path} are not those of the grant")
        if over := [gpu for gpu, used in folder.used_bytes.items() if used > folder.memory_bytes.get(gpu, 0)]:
            yield Finding(f"usage in {path}", f"the usage in {path} exceeds the limits on {', '.join(over)}")


def _of_kubelet(observed: Observation, name: str, node: OnNode) -> Iterator[Finding]:
    """Init containers are not listed, so the record may know more names for a set of tickets than kubelet."""
    here = {(pod.namespace, pod.name): uid for uid, pod in observed.pods.items() if pod.node == name}
    held: dict[str, tuple[str, str]] = {}
    for holder in node.holders or ():
        who = (holder.namespace, holder.pod)
        about = f"kubelet's {'/'.join(who)} {holder.container}"
        uid = here.get(who)
        if uid is None:
            yield Finding(about, f"kubelet lists {'/'.join(who)}, whose pod is not here")
        elif observed.pods[uid].over:
            continue
        elif not any(each.tickets == holder.devices for each in node.allocations):
            yield Finding(
                about, f"kubelet gave {holder.container} of {'/'.join(who)} devices that the record does not know"
            )
        for device in holder.devices:
            if held.setdefault(device, who) != who:
                yield Finding(
                    f"device {device}", f"kubelet gave {device} to {'/'.join(held[device])} and {'/'.join(who)}"
                )


def _has_claims(observed: Observation, node: OnNode, container: Container) -> bool:
    """Whether the container's devices are those of claims of its pod."""
    return claim_invariants.explains(node.claims, observed.claims, container.pod_uid, container.visible, node.instances)


def _of_containers(observed: Observation, name: str, node: OnNode) -> Iterator[Finding]:
    for container in node.containers:
        about, who = f"container {container.id}", f"container {container.id[:12]} of the pod {container.pod_uid}"
        pod = observed.pods.get(container.pod_uid)
        mine = [each.bound for each in node.allocations if each.bound and each.bound.pod_uid == container.pod_uid]
        if pod is None or pod.over or pod.node != name:
            yield Finding(about, f"{who} runs, its pod does not")
        elif _has_claims(observed, node, container):
            if container.folder and not claim_invariants.owns(node.claims, container.folder):
                yield Finding(about, f"{who} runs with the folder {container.folder}, which is of none of its claims")
        elif not mine:
            yield Finding(about, f"{who} sees {', '.join(container.visible)}, which the record does not know")
        elif container.folder:
            owners = [bound for bound in mine if container.folder == f"{bound.pod_uid}_{bound.container}"]
            if not owners or container.folder not in node.folders:
                yield Finding(about, f"{who} runs with the folder {container.folder}, which is not its own")
            elif {*owners[0].gpus} != {*container.visible}:
                yield Finding(about, f"{who} sees other GPUs than the record has")
        elif not (like := [b for b in mine if _shows(container.visible, b, node)]):
            yield Finding(about, f"{who} sees other GPUs than the record has")
        elif all(bound.mode is Mode.QUOTA for bound in like):
            yield Finding(about, f"{who} runs without its limits")
        if partitioned := sorted(node.divided.intersection(container.visible)):
            yield Finding(f"{about} whole", f"{who} sees all of {', '.join(partitioned)}, which is partitioned by MIG")
        if strange := {*container.held_mib} - {*container.visible}:
            yield Finding(about, f"{who} holds memory of {', '.join(sorted(strange))}, which it does not see")


def _shows(visible: Sequence[str], bound: Bound, node: OnNode) -> bool:
    """Whether these are the devices of `bound`."""
    return {*visible} == {*bound.gpus} or _shows_instances(visible, bound, node)


def _shows_instances(visible: Sequence[str], bound: Bound, node: OnNode) -> bool:
    """Whether these are devices of MIG, and of those that are there just the ones that `bound` has. Some may be gone:
    after a reboot the same places have other devices."""
    there = {node.instances[device] for device in visible if device in node.instances}
    return bool(bound.instances) and all(map(is_mig_device, visible)) and there <= {*bound.instances}


def _of_mig(observed: Observation, name: str, node: OnNode) -> Iterator[Finding]:
    """Each instance is there because a container has it, but for those of GPUs that are cut as a label says."""
    needed = {instance for bound in node.bounds for instance in bound.instances} | claim_invariants.places(node.claims)
    for instance in {*node.instances.values()} | node.noted:
        what = f"{instance.profile} at {instance.start} of {instance.gpu}"
        if instance not in node.noted:
            yield Finding(f"instance {what}", f"no one made {what}, which is there")
        elif instance not in needed and instance.gpu not in node.labelled:
            yield Finding(f"instance {what}", f"no one has {what}, which was made")


def _of_mps(observed: Observation, name: str, node: OnNode) -> Iterator[Finding]:
    clients = {
        gpu for bound in node.bounds for gpu in bound.gpus if bound.mode is Mode.MPS and observed.lives(bound.pod_uid)
    }
    for gpu in node.served - node.kept:
        yield Finding(f"MPS on {gpu}", f"no one owns the processes of MPS on {gpu}")
    for gpu in (clients | node.kept) - node.served:
        yield Finding(f"MPS on {gpu}", f"there is no daemon of MPS on {gpu}, which is shared by it")
