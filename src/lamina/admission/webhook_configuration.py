"""The MutatingWebhookConfiguration: which pods the API server sends to Lamina, and how it reaches Lamina.

* `pods` gets pods that name a resource in one of Lamina's domains, or an annotation that requests GPUs, so an outage
  stops no other pod. It fails closed.
  API servers without match conditions (before 1.28) drop the condition and would send every pod. There the webhook
  must not be able to stop the cluster, so it fails open, and a GPU pod that it missed gets no grant.
* `templates` gets workloads whose pod template names such a resource. It fails open, which is safe: the API server
  itself refuses a fraction of a GPU that was not rewritten, and pods are reviewed when they are created.
* `hiding` exists only if the configuration hides GPUs (`admission.hideGpus`). It gets every new pod and ephemeral
  container, whatever its labels say, because who writes those may want to see GPUs. Namespaces are exempt by their
  labels, which tenants cannot write. It fails as the configuration says.
* `claims` exists only where agents serve ResourceClaims. It gets every new pod with claims, whatever its labels say,
  and fails open: a pod that it missed may get a GPU in excess of a quota until the controller ends it.
"""

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lamina.configuration import Config
from lamina.core.component_names import ADMISSION_SERVICE, WEBHOOKS
from lamina.dialects import IGNORING_LABELS, requesting_annotations, resource_domains, template_condition
from lamina.dialects.templates import WORKLOADS
from lamina.ports.kube import MUTATING_WEBHOOKS, Kube, NotFound, Object
from lamina.ports.kube.merge_patch import includes

log = logging.getLogger(__name__)

PATH = "/mutate"
HIDING_PATH = "/hide-gpus"
CLAIMS_PATH = "/gate-claims"


def service_address(namespace: str) -> Mapping[str, Any]:
    """`clientConfig` for a webhook behind the Service lamina-admission."""
    return {"service": {"namespace": namespace, "name": ADMISSION_SERVICE, "path": PATH, "port": 443}}


def url_address(host: str, port: int) -> Mapping[str, Any]:
    """`clientConfig` for a webhook that the API server reaches without a Service."""
    name = f"[{host}]" if ":" in host else host
    return {"url": f"https://{name}:{port}{PATH}"}


def webhook_configuration(
    config: Config,
    address: Mapping[str, Any],
    ca: bytes,
    *,
    namespace: str,
    policy: str = "Fail",
    claims: bool = False,
) -> Object:
    """The object to register. `ca` is PEM; `namespace` is Lamina's, whose pods are not reviewed; `policy` applies to
    GPU pods while no replica answers. `claims`: agents serve ResourceClaims."""
    requests_gpus = match_expression(config)
    templates = [_rule(group, resources, "CREATE", "UPDATE") for group, resources in WORKLOADS.items()]
    webhooks = [
        _webhook("pods", [_PODS], requests_gpus, policy, address, ca),
        _webhook("templates", templates, template_expression(config), "Ignore", address, ca),
    ]
    if claims:
        webhooks.append(_claims_webhook(address, ca))
    if config.admission.hide_gpus:
        webhooks.append(_hiding_webhook(config.admission.hiding_failure_policy, address, ca))
    own = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", namespace]}
    for each in webhooks:
        each["namespaceSelector"]["matchExpressions"].insert(0, own)
    return {"metadata": {"name": WEBHOOKS}, "webhooks": webhooks}


def _rule(group: str, resources: Sequence[str], *operations: str) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": list(resources),
        "scope": "Namespaced",
    }


_PODS = _rule("", ["pods"], "CREATE")
_EPHEMERAL_CONTAINERS = _rule("", ["pods/ephemeralcontainers"], "UPDATE")


def _webhook(
    name: str, rules: Sequence[Mapping[str, Any]], condition: str, policy: str, address: Mapping[str, Any], ca: bytes
) -> Object:
    not_ignored = [{"key": label, "operator": "NotIn", "values": ["ignore"]} for label in IGNORING_LABELS]
    return {
        "name": f"{name}.{WEBHOOKS}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {**address, "caBundle": base64.b64encode(ca).decode()},
        "rules": list(rules),
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [*not_ignored]},
        "objectSelector": {"matchExpressions": not_ignored},
        "matchConditions": [{"name": f"{name}-condition", "expression": condition}],
        "failurePolicy": policy,
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }


def _hiding_webhook(policy: str, address: Mapping[str, Any], ca: bytes) -> Object:
    webhook = _webhook("hiding", [_PODS, _EPHEMERAL_CONTAINERS], "", policy, _at(HIDING_PATH, address), ca)
    return {name: value for name, value in webhook.items() if name not in ("objectSelector", "matchConditions")}


def _claims_webhook(address: Mapping[str, Any], ca: bytes) -> Object:
    """A pod with a node has been scheduled, and cannot wait for anything."""
    waits = "has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0 && !has(object.spec.nodeName)"
    webhook = _webhook("claims", [_PODS], waits, "Ignore", _at(CLAIMS_PATH, address), ca)
    return {name: value for name, value in webhook.items() if name != "objectSelector"}


def _at(path: str, address: Mapping[str, Any]) -> Mapping[str, Any]:
    if "url" in address:
        return {"url": address["url"].removesuffix(PATH) + path}
    return {"service": {**address["service"], "path": path}}


def match_expression(config: Config) -> str:
    """CEL: whether any container names a resource in one of Lamina's domains, even a misspelled one.

    Or whether the pod has an annotation that requests GPUs, whatever scheduler it names.
    """
    by_container = _any_container("object.spec", lambda amounts: _names_ours(amounts, config))
    return f"{by_container}{_or_by_annotation('object', config)}"


def template_expression(config: Config) -> str:
    """CEL: whether a container of a template names such a resource, or has the result of an earlier rewrite."""
    of_job = "object.spec.jobTemplate.spec.template"
    template = f"has(object.spec.jobTemplate) ? {of_job} : object.spec.template"

    def concerned(amounts: str) -> str:
        return f"({_names_ours(amounts, config)} || {template_condition(amounts, config)})"

    by_container = _any_container("template.spec", concerned)
    return f"[{template}].exists(template, {by_container}{_or_by_annotation('template', config)})"


def _names_ours(amounts: str, config: Config) -> str:
    ours = " || ".join(f"name.startsWith('{domain}')" for domain in resource_domains(config))
    return f"{amounts}.exists(name, {ours})"


def _or_by_annotation(pod: str, config: Config) -> str:
    """CEL: the further condition that the pod has an annotation that requests GPUs; empty if there are none."""
    ours = " || ".join(f"name.startsWith('{prefix}')" for prefix in requesting_annotations(config))
    annotations = f"{pod}.metadata.annotations"
    return f" || (has({pod}.metadata) && has({annotations}) && {annotations}.exists(name, {ours}))" if ours else ""


def _any_container(spec: str, condition: Callable[[str], str]) -> str:
    """CEL: whether `condition` holds for the limits or the requests of any container of the pod spec."""
    amounts = " || ".join(
        f"(has(c.resources.{field}) && {condition(f'c.resources.{field}')})" for field in ("limits", "requests")
    )
    requests = f"(c, has(c.resources) && ({amounts}))"
    return (
        f"{spec}.containers.exists{requests} || (has({spec}.initContainers) && {spec}.initContainers.exists{requests})"
    )


async def register(kube: Kube, config: Config, address: Mapping[str, Any], ca: bytes, *, claims: bool = False) -> bool:
    """Create or update the registration. Returns whether it was missing or different before.

    Raises Outside, and Conflict where others write it too.

    The webhook fails closed only on a server that has been observed to keep the match conditions. A server that drops
    them is sent the conditions again at each check, which changes nothing until it has been upgraded.
    """
    first: Object | None = None
    desired = partial(webhook_configuration, config, address, ca, namespace=kube.lamina_namespace, claims=claims)
    try:
        first = present = await kube.get(MUTATING_WEBHOOKS, WEBHOOKS)
    except NotFound:
        present = await kube.create(MUTATING_WEBHOOKS, desired(policy="Ignore"))
    if not _keeps_conditions(present):
        present = await _write(kube, present, desired(policy="Ignore"))
    if _keeps_conditions(present):
        present = await _write(kube, present, desired())
    else:
        log.warning("This API server has no match conditions: while admission is down, pods are created without a GPU")
    return first is None or present.get("webhooks") != first.get("webhooks")


def _keeps_conditions(present: Object) -> bool:
    webhooks = present.get("webhooks") or [{}]
    return bool(webhooks[0].get("matchConditions"))


async def _write(kube: Kube, present: Object, wanted: Object) -> Object:
    """Replace `present` by `wanted`, but keep its metadata, such as labels from the installation."""
    if includes(present.get("webhooks"), wanted["webhooks"]):
        return present
    return await kube.replace(MUTATING_WEBHOOKS, wanted | {"metadata": present["metadata"]})
