"""Pods whose GPUs are to be served by a claim that Lamina generates for them, and what admission changes in them.

The resources go, and each container names its request in the claim. The claim comes from a template that the controller
makes from the pod's annotation before the pod is scheduled. The label lets the controller find such pods.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.requests import PodRequest
from lamina.dialects.containers import ContainerManifest, read_containers
from lamina.dialects.groups import named_group
from lamina.dialects.patches import PatchOperation, add_metadata, remove_resource
from lamina.dialects.registry import name_index, resource_names
from lamina.dra.generated import GeneratedClaim, generated_claim
from lamina.errors import BadInput

ASKED = "lamina.dev/by-claim"
"""The annotation by which a pod asks for a claim, or refuses one."""
GENERATED = "lamina.dev/generated-claim"
"""The label with the name of the template, and the annotation with its contents."""
ENTRY = "lamina"
"""The name of the claim in the pod."""


def claim_for(pod: Mapping[str, Any], request: PodRequest, config: Config) -> GeneratedClaim | str:
    """The claim that the pod is to have; otherwise why it has none, or nothing if none is wanted.

    Raises BadInput where the pod asks for a claim that cannot express its request.
    """
    wanted = str(((pod.get("metadata") or {}).get("annotations") or {}).get(ASKED, "")).strip().lower()
    if wanted not in ("", "true", "false"):
        raise BadInput(f"annotation {ASKED}: must be true or false, got {wanted!r}")
    rule = config.admission.by_claim
    if rule == "never" or wanted == "false" or (rule == "asked" and not wanted):
        if wanted == "true":
            raise BadInput(f"annotation {ASKED}: this cluster makes no claims for pods; remove the annotation")
        return ""
    try:
        if group := named_group(pod):
            raise BadInput(f"a ResourceClaim cannot express the pod group {group.name}")
        if any(each.get("name") == ENTRY for each in pod["spec"].get("resourceClaims") or ()):
            raise BadInput(f"the pod has a claim with the name {ENTRY} already; rename it")
        return generated_claim(request)
    except BadInput as problem:
        if wanted:
            raise BadInput(f"annotation {ASKED}: {problem}") from problem
        return f"served without a claim, because {problem}"


def use_claim(pod: Mapping[str, Any], claim: GeneratedClaim, config: Config) -> tuple[PatchOperation, ...]:
    """What is to be changed in a new pod that has this claim, in the order in which it can be applied."""
    containers, requests = read_containers(pod), {each.container for each in claim.requests}
    names = {name for each in resource_names(config) for name in each.all} | name_index(config).aliases.keys()
    return (
        *(
            change
            for container in containers
            for name in sorted(names & container.requested.keys())
            for change in remove_resource(container, name)
        ),
        *(change for container in containers if container.name in requests for change in _use(container)),
        *_change_pod(pod, claim),
    )


def _use(container: ContainerManifest) -> Iterator[PatchOperation]:
    use = {"name": ENTRY, "request": container.name}
    pointer = f"{container.pointer}/resources/claims"
    if (container.spec.get("resources") or {}).get("claims"):
        yield PatchOperation(f"{pointer}/-", use)
    else:
        yield PatchOperation(pointer, [use])


def _change_pod(pod: Mapping[str, Any], claim: GeneratedClaim) -> Iterator[PatchOperation]:
    entry = {"name": ENTRY, "resourceClaimTemplateName": claim.name}
    if pod["spec"].get("resourceClaims"):
        yield PatchOperation("/spec/resourceClaims/-", entry)
    else:
        yield PatchOperation("/spec/resourceClaims", [entry])
    metadata = pod.get("metadata") or {}
    for field, value in (("annotations", claim.text), ("labels", claim.name)):
        yield from add_metadata(field, metadata.get(field), {GENERATED: value})
