"""The variables by which HAMi and its ancestors control a container, as its pod writes them.

    GPU_CORE_UTILIZATION_POLICY   default: idle GPU time is lent to the container
                                  force: its share of compute is also the most that it gets
                                  disable: cannot be had, because neighbors rely on the limit; a warning says so

Only values that stand in the pod count. They are read before the pod runs, so nothing that a process sets later
changes a limit. The last entry of a name wins, as in Kubernetes. The other variables change nothing: each that a pod
sets has a warning with what to use instead.

NVIDIA_DRIVER_CAPABILITIES with `graphics` or `display` says that a container renders. Where it has a share, a warning
says that its memory limit does not hold for that.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from lamina.core.config import Config
from lamina.core.grants import ComputePolicy
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.containers import ContainerManifest, quote
from lamina.dialects.registry import name_index
from lamina.errors import BadInput

COMPUTE_VARIABLE = "GPU_CORE_UTILIZATION_POLICY"
_DEFAULT, FORCE, _DISABLE = "default", "force", "disable"
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
_RENDERING = {"graphics", "display"}
IGNORED = {
    "CUDA_DISABLE_CONTROL": "limits stay on",
    "CUDA_DEVICE_MEMORY_LIMIT": "the limit is that of the pod's grant",
    "CUDA_DEVICE_SM_LIMIT": "the limit is that of the pod's grant",
    "CUDA_TASK_PRIORITY": "use the resource for the priority",
    "CUDA_OVERSUBSCRIBE": "use sharing.memoryScaling in Lamina's configuration",
    "CUDA_DEVICE_MEMORY_SHARED_CACHE": "counts are kept where the agent puts them",
    "ACTIVE_OOM_KILLER": "an allocation over the limit fails with CUDA error 2; no program is killed",
    "LIBCUDA_LOG_LEVEL": "the facade logs refusals only",
}
"""The variables that change nothing, and what holds here instead. Those of limits may end with the index of a GPU."""
_INDEXED = ("CUDA_DEVICE_MEMORY_LIMIT_", "CUDA_DEVICE_SM_LIMIT_")


def apply_variables(request: PodRequest, containers: Sequence[ContainerManifest]) -> PodRequest:
    """The request as the variables of its containers change it, with a warning for each that is not honored.

    Raises BadInput for a policy that does not exist or that cannot be held.
    """
    manifests = {container.name: container for container in containers}
    variables = {each.container: _variables(manifests[each.container].spec) for each in request.containers}
    if not any(variables.values()):
        return request
    applied = tuple(_capped(each, variables[each.container], request.compute_policy) for each in request.containers)
    warnings = dict.fromkeys(text for each in request.containers for text in _warnings(each, variables[each.container]))
    return structs.replace(request, containers=applied, warnings=(*request.warnings, *warnings))


def _variables(container: Mapping[str, Any]) -> dict[str, object]:
    """The values of those variables that are known here; None for one that the pod takes from elsewhere."""
    entries = ((str(entry.get("name")), entry) for entry in container.get("env") or ())
    return {
        name: None if entry.get("valueFrom") is not None else entry.get("value") or ""
        for name, entry in entries
        if name in (COMPUTE_VARIABLE, CAPABILITIES) or _instead(name)
    }


def _instead(name: str) -> str:
    """What holds instead of a variable that changes nothing, or nothing for other variables."""
    for prefix in _INDEXED:
        if name.startswith(prefix) and name.removeprefix(prefix).isdecimal():
            name = prefix[:-1]
    return IGNORED.get(name, "")


def _capped(container: ContainerRequest, variables: Mapping[str, object], policy: ComputePolicy) -> ContainerRequest:
    if COMPUTE_VARIABLE not in variables:
        return container
    written = variables[COMPUTE_VARIABLE]
    where = f'container "{container.container}": {COMPUTE_VARIABLE}'
    if written is None:
        raise BadInput(f"{where} must have its value in the pod, not valueFrom; write value: {FORCE}")
    chosen = written.lower() if isinstance(written, str) else ""
    if written != "" and chosen not in (_DEFAULT, FORCE, _DISABLE):
        raise BadInput(f"{where} must be {_DEFAULT}, {FORCE} or {_DISABLE}, got {quote(written)}")
    if chosen != FORCE or not container.cores or container.whole:
        return container
    if policy is ComputePolicy.NONE:
        raise BadInput(
            f"{where}={FORCE} cannot be held: the compute policy of the cluster is {policy}; remove the variable"
        )
    if container.most_cores not in (0, container.cores):
        raise BadInput(
            f"{where}={FORCE} limits it to its request, {container.cores}, and lamina.dev/gpucores-limit to "
            f"{container.most_cores}; remove one of them"
        )
    return structs.replace(container, most_cores=container.cores if policy is ComputePolicy.WEIGHT else 0)


def lending_notice(request: PodRequest, config: Config) -> str:
    """What to say about the first container of the pod whose share of compute lends without a limit, or nothing."""
    lending = next((each for each in request.containers if each.lends(request.compute_policy)), None)
    if lending is None:
        return ""
    names = name_index(config).names[request.dialect]
    return (
        f'container "{lending.container}": {names.cores or "compute"} {lending.cores} % is a share that lends, not a '
        f"cap: the container also uses time that others leave; for a cap, set {COMPUTE_VARIABLE}={FORCE} in it, or "
        f"sharing.cappedNamespaces or dialects.{request.dialect}.computePolicy in Lamina's configuration"
    )


def _warnings(container: ContainerRequest, variables: Mapping[str, object]) -> Iterator[str]:
    for name, written in variables.items():
        if name == CAPABILITIES:
            named = set(written.split(",")) if isinstance(written, str) else set()
            if named & _RENDERING and not container.whole:
                yield (
                    f'container "{container.container}" has {name}={written}: memory that Vulkan and OpenGL take is '
                    "not counted, so its limit does not hold there; for rendering, request a whole GPU"
                )
        elif instead := _instead(name):
            yield f"the variable {name} has no effect: {instead}"
        elif isinstance(written, str) and written.lower() == _DISABLE:
            yield (
                f"{name}={_DISABLE} does not switch the compute limit off, because other pods on the GPU rely on it; "
                "request fewer cores, or none, to use the time that others leave"
            )
