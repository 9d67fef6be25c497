"""Claims for pods that request shares by resources: the request of the pod as a ResourceClaimTemplate.

Each container has a request of its own name, because containers that name the same request share its limits. The
template has the name of its contents, so that pods with equal requests use the same one, and so that nothing but the
contents decides what is in it.

Policies for nodes and GPUs, and a dialect's rules about which containers may share a GPU, concern Lamina's scheduler.
kube-scheduler allocates claims, so they do not apply.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from lamina.core.gpus import Mode
from lamina.core.grants import HIGH, ComputePolicy
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dra.names import CORES, DRIVER, MEMORY
from lamina.dra.opaque import SHARE_API, SHARE_CONFIG
from lamina.errors import BadInput

_PREFIX = "lamina-"
_MAX_GPUS = 16
_MAX_CHOICES = 32

Name = Annotated[str, Meta(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}$")]
Words = Annotated[tuple[Word, ...], Meta(max_length=_MAX_CHOICES)]
Mebibytes = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Percent = Annotated[int, Meta(ge=0, le=100)]


class _Written(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """As the annotation has it."""


class GeneratedRequest(_Written, frozen=True, kw_only=True):
    """What one container has of each of `count` GPUs; all of it where there is no memory. Limits of 0 are no limits
    above what is requested."""

    container: Name
    count: Annotated[int, Meta(ge=1, le=_MAX_GPUS)] = 1
    memory_mib: Mebibytes | None = None
    most_memory_mib: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    cores: Percent = 0
    most_cores: Percent = 0
    first: bool = False
    """Its work comes before that of others on the GPU. A low priority is what others have, so it needs no word."""


class GeneratedClaim(_Written, frozen=True, kw_only=True):
    """The claim of a pod. GPUs are of one of `types`, parts of the model's name, and of none of `not_types`."""

    requests: Annotated[tuple[GeneratedRequest, ...], Meta(min_length=1, max_length=_MAX_CHOICES)]
    types: Words = ()
    not_types: Words = ()
    uuids: Words = ()
    not_uuids: Words = ()

    @property
    def text(self) -> str:
        """As an annotation has it."""
        return msgspec.json.encode(self, order="sorted").decode()

    @property
    def name(self) -> str:
        """The name of its template."""
        return _PREFIX + hashlib.sha256(self.text.encode()).hexdigest()[:24]


def generated_claim(request: PodRequest) -> GeneratedClaim:
    """The claim of a pod. Raises BadInput with what a claim cannot express."""
    if problem := _inexpressible(request):
        raise BadInput(f"a ResourceClaim cannot express {problem}")
    selector = request.selector
    made = {
        "requests": [msgspec.to_builtins(_request(each, request.compute_policy)) for each in request.containers],
        "types": sorted({each.lower() for each in selector.types}),
        "notTypes": sorted({each.lower() for each in selector.not_types}),
        "uuids": sorted(set(selector.uuids)),
        "notUuids": sorted(set(selector.not_uuids)),
    }
    try:
        return msgspec.convert(made, GeneratedClaim)
    except msgspec.ValidationError as error:
        raise BadInput(f"a ResourceClaim cannot express the request: {error}") from error


def read_generated(text: str, name: str) -> GeneratedClaim:
    """The claim in an annotation, which has to be that of the template `name`. Raises BadInput."""
    try:
        claim = msgspec.json.decode(text, type=GeneratedClaim)
    except msgspec.DecodeError as error:
        raise BadInput(f"the annotation is not one that Lamina wrote: {error}") from error
    if claim.name != name:
        raise BadInput(f"the annotation belongs to the template {claim.name}, but the pod names {name}")
    return claim


def template_spec(claim: GeneratedClaim) -> dict[str, Any]:
    """The specification of the claim's template."""
    requests = [_as_request(each, claim) for each in claim.requests]
    constraints = [
        {"requests": [each.container], "distinctAttribute": f"{DRIVER}/uuid"}
        for each in claim.requests
        if each.count > 1 and each.memory_mib is not None
    ]
    config = [found for each in claim.requests if (found := _config(each)) is not None]
    devices: dict[str, Any] = {"requests": requests}
    if constraints:
        devices["constraints"] = constraints
    if config:
        devices["config"] = config
    return {"spec": {"devices": devices}}


def _request(container: ContainerRequest, policy: ComputePolicy) -> GeneratedRequest:
    if container.whole:
        return GeneratedRequest(container=container.container, count=container.count)
    lends = policy is ComputePolicy.WEIGHT and 0 < container.cores < 100
    return GeneratedRequest(
        container=container.container,
        count=container.count,
        memory_mib=container.memory_mib,
        most_memory_mib=container.most_memory_mib,
        cores=container.cores if policy is not ComputePolicy.NONE else 0,
        most_cores=(container.most_cores or 100) if lends else 0,
        first=container.priority == HIGH,
    )


def _inexpressible(request: PodRequest) -> str:
    """What of the request no claim can say, or nothing."""
    selector = request.selector
    if request.only_native_reason:
        return "devices that only nodes with NVIDIA's names offer"
    if request.numa_bind:
        return "NUMA binding"
    if selector.idle or not {*selector.modes} <= {Mode.QUOTA}:
        return "a mode of sharing, or that the GPU must be idle"
    if request.compute_policy is ComputePolicy.THREADS:
        return "a part of the processors by MPS"
    return next((found for each in request.containers if (found := _inexpressible_of(each))), "")


def _inexpressible_of(container: ContainerRequest) -> str:
    where = f'container "{container.container}"'
    if container.init:
        return f"{where}: the share of an init container, which counts only while it runs"
    if container.whole:
        return ""
    if container.memory_mib is None:
        return f"{where}: a percentage of memory"
    if container.exclusive:
        return f"{where}: a GPU of its own with less than all of its memory"
    return ""


def _as_request(request: GeneratedRequest, claim: GeneratedClaim) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": DRIVER}
    if expressions := _expressions(claim):
        exactly["selectors"] = [{"cel": {"expression": each}} for each in expressions]
    if request.count > 1:
        exactly |= {"allocationMode": "ExactCount", "count": request.count}
    if request.memory_mib is not None:
        amounts = {MEMORY: f"{request.memory_mib}Mi"} | ({CORES: str(request.cores)} if request.cores else {})
        exactly["capacity"] = {"requests": amounts}
    return {"name": request.container, "exactly": exactly}


def _config(request: GeneratedRequest) -> dict[str, Any] | None:
    limits: dict[str, Any] = {}
    if request.memory_mib is not None and request.most_memory_mib > request.memory_mib:
        limits["memory"] = f"{request.most_memory_mib}Mi"
    if request.most_cores > request.cores > 0:
        limits["cores"] = request.most_cores
    own: dict[str, Any] = ({"limits": limits} if limits else {}) | ({"latencyClass": True} if request.first else {})
    if not own:
        return None
    parameters: Mapping[str, Any] = {"apiVersion": SHARE_API, "kind": SHARE_CONFIG, **own}
    return {"requests": [request.container], "opaque": {"driver": DRIVER, "parameters": parameters}}


def _expressions(claim: GeneratedClaim) -> list[str]:
    """CEL for the choice of GPUs. Words have neither quotes nor backslashes."""
    attributes = f"device.attributes['{DRIVER}']"
    model = f"{attributes}.productName.lowerAscii()"
    found = []
    if claim.types:
        found.append(" || ".join(f"{model}.contains('{each}')" for each in claim.types))
    found += [f"!{model}.contains('{each}')" for each in claim.not_types]
    for uuids, negation in ((claim.uuids, ""), (claim.not_uuids, "!")):
        if uuids:
            listed = ", ".join(f"'{each}'" for each in uuids)
            found.append(f"{negation}({attributes}.uuid in [{listed}])")
    return found
