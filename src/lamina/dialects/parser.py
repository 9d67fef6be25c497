"""A pod -> its request: find the dialect that it uses, and let that dialect read it."""

from collections.abc import Mapping, Sequence, Set
from itertools import chain, islice
from typing import Any

from lamina.core.config import Config
from lamina.core.grants import MAX_CONTAINERS
from lamina.core.host_size import asked_of
from lamina.core.requests import MAX_GPU_CONTAINERS, PodRequest
from lamina.dialects.container_limits import limit_compute, limit_memory
from lamina.dialects.container_variables import apply_variables
from lamina.dialects.containers import ContainerManifest, is_zero, read_containers
from lamina.dialects.high_priority import lower_priorities, with_latency_class
from lamina.dialects.protocol import Dialect, PodManifest
from lamina.dialects.registry import NameIndex, dialect_named, name_index
from lamina.dialects.unsupported import explain_unknown, system_of
from lamina.errors import BadInput

DEFAULT_NAMESPACE = "default"
DEFAULT_SCHEDULER = "default-scheduler"


def parse(pod: Mapping[str, Any], config: Config) -> PodRequest | None:
    """What the pod requests of GPUs, or None where it requests none. Raises BadInput with one sentence.

    The answer is the same before and after admission has filled in the defaults. Parse a pod once and pass the request
    on: what else this package offers takes it along with the pod. A pod that is `served_by_claim` requests no GPU by a
    grant.
    """
    index = name_index(config)
    if served_by_claim(pod, config):
        return None
    containers = tuple(without_zero_counts(container, index) for container in read_named(pod, index))
    dialect = _find_dialect(pod, containers, index)
    if dialect is None:
        return None
    names = index.names[dialect.name]
    manifest = read_pod(pod, containers, index)
    request = dialect.parse(manifest, names)
    if request is None:
        return None
    for read in (limit_compute, limit_memory, with_latency_class):
        request = read(request, manifest.annotations)
    request = apply_variables(request, containers)
    if (count := len(request.containers)) > MAX_GPU_CONTAINERS:
        raise BadInput(f"the pod has {count} containers that request GPUs; it may have at most {MAX_GPU_CONTAINERS}")
    return lower_priorities(request, manifest.namespace, config)


def served_by_claim(pod: Mapping[str, Any], config: Config) -> bool:
    """Whether kube-scheduler has made a ResourceClaim of the tickets that the pod requests.

    It does where a node has no tickets at that moment and a DeviceClass has their name. Kubelet then hands out what the
    claim has, and no ticket. Source: `extendedResourceClaimStatus` of a pod's status, from Kubernetes 1.34 on.
    """
    made = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return any(each.get("resourceName") in name_index(config).tickets for each in made.get("requestMappings") or ())


def ticket_holders(pod: Mapping[str, Any], config: Config) -> frozenset[str]:
    """The names of the containers that request tickets, also in a pod that `parse` refuses.

    No other container can have a GPU by a grant: kubelet asks an agent only about the tickets of its node.
    """
    if served_by_claim(pod, config):
        return frozenset()
    spec, tickets = pod.get("spec") or {}, name_index(config).tickets
    containers = islice(chain(spec.get("initContainers") or (), spec.get("containers") or ()), MAX_CONTAINERS)
    return frozenset(container["name"] for container in containers if _requests(container, tickets))


def tickets_requested(pod: Mapping[str, Any], config: Config) -> dict[str, int]:
    """How many tickets kube-scheduler counts for the pod, by resource, also for a pod that `parse` refuses."""
    if served_by_claim(pod, config):
        return {}
    spec = pod.get("spec") or {}
    counts = {name: asked_of(spec, name) for name in sorted(name_index(config).tickets)}
    return {name: count for name, count in counts.items() if count > 0}


def _requests(container: Mapping[str, Any], names: Set[str]) -> bool:
    resources = container.get("resources") or {}
    amounts = [resources.get(field) or {} for field in ("limits", "requests")]
    return any(not is_zero(each[name]) for each in amounts for name in each.keys() & names)


def read_named(pod: Mapping[str, Any], index: NameIndex) -> tuple[ContainerManifest, ...]:
    """The containers, with the names in force for what they request by other ones.

    Raises BadInput as `read_containers`, and for a container that has both.
    """
    return tuple(_named(container, index.aliases) for container in read_containers(pod))


def _named(container: ContainerManifest, aliases: Mapping[str, str]) -> ContainerManifest:
    if aliases.keys().isdisjoint(container.requested):
        return container
    requested = {aliases.get(name, name): amount for name, amount in container.requested.items()}
    if len(requested) < len(container.requested):
        both = next(f"{other} and {name}" for other, name in aliases.items() if other in container.requested)
        raise BadInput(f"{container.where}: {both} are names of one amount; request one of them")
    return container._replace(requested=requested)


def zero_counts(container: ContainerManifest, index: NameIndex) -> tuple[str, ...]:
    """The resources of which the container requests 0, and so no GPU."""
    if index.owners.keys().isdisjoint(container.requested):
        return ()
    return tuple(
        name
        for name in container.requested
        if (owner := index.owners.get(name)) is not None
        and name == (names := index.names[owner.name]).count
        and owner.counts_nothing(container, names)
    )


def without_zero_counts(container: ContainerManifest, index: NameIndex) -> ContainerManifest:
    """The container as if it did not name these."""
    zero = zero_counts(container, index)
    if not zero:
        return container
    return container._replace(requested={name: each for name, each in container.requested.items() if name not in zero})


def read_pod(pod: Mapping[str, Any], containers: Sequence[ContainerManifest], index: NameIndex) -> PodManifest:
    """What dialects read of a pod with these containers."""
    metadata = pod.get("metadata") or {}
    return PodManifest(
        containers=containers,
        annotations=metadata.get("annotations") or {},
        labels=metadata.get("labels") or {},
        choice_annotations=index.choice_annotations,
        config=index.config,
        namespace=metadata.get("namespace") or DEFAULT_NAMESPACE,
    )


def dialect_of(request: PodRequest) -> Dialect:
    """The dialect that the request was parsed from. Raises KeyError for a request that was made in another way."""
    dialect = dialect_named(request.dialect)
    if dialect is None:
        raise KeyError(request.dialect)
    return dialect


def _find_dialect(pod: Mapping[str, Any], containers: Sequence[ContainerManifest], index: NameIndex) -> Dialect | None:
    """The dialect of the pod with these containers, None where they request no GPU.

    Raises BadInput for mixed, unsupported and misspelled names.
    """
    concerned: dict[str, ContainerManifest] = {}
    seen: set[str] = set()
    for container in containers:
        new = container.requested.keys() - seen
        seen |= new
        for name in new:
            if name in index.owners or name.startswith(index.guarded_prefixes) or system_of(name):
                concerned[name] = container
    granted = [name for name in sorted(concerned) if name in index.owners and _needs_grant(name, index)]
    cause = _requesting_annotation(pod, granted, index) or (granted[0] if granted else "")
    dialect = _owner(cause, index)
    for name in sorted(concerned):
        owner = index.owners.get(name)
        system = owner.name if owner else system_of(name)
        if system and dialect and system != dialect.name:
            what = cause if cause in index.owners else f"annotation {cause}"
            raise BadInput(
                f"{concerned[name].where}: {name} of the {system} dialect cannot be combined with {what} in one pod; "
                "use one of the two"
            )
        if owner is None and (problem := explain_unknown(name, index)):
            raise BadInput(f"{concerned[name].where}: {problem}")
    return dialect


def _owner(cause: str, index: NameIndex) -> Dialect | None:
    """The dialect that has a resource or an annotation."""
    if cause in index.owners:
        return index.owners[cause]
    return next((one for one in index.dialects if cause.startswith(one.annotation_prefixes)), None) if cause else None


def _requesting_annotation(pod: Mapping[str, Any], granted: Sequence[str], index: NameIndex) -> str:
    """The first annotation by which the pod requests GPUs, or nothing. `granted` are the resources that it names.

    Such keys may mean anything in pods of other schedulers. So they are read in pods that name a scheduler of their
    dialect, where misspelled ones are read to be refused, and in pods that name another one of Lamina's and no GPU by a
    resource. Admission assigns such a scheduler to pods that name GPUs by a resource alone, and changes nothing here.
    """
    named = (pod.get("spec") or {}).get("schedulerName")
    if named == DEFAULT_SCHEDULER or named not in index.config.schedulers.served:
        return ""
    annotations: list[str] = sorted((pod.get("metadata") or {}).get("annotations") or {})
    for dialect in index.dialects:
        own = named in dialect.schedulers
        others = [name for name in granted if index.owners[name] is not dialect]
        if others and not own:
            continue
        found = [key for key in annotations if dialect.requests_by(key)]
        if own and not others:
            found += [key for key in annotations if key.startswith(dialect.annotation_prefixes)]
        if found:
            return found[0]
    return ""


def _needs_grant(name: str, index: NameIndex) -> bool:
    return bool(index.names[index.owners[name].name].ticket)
