"""The registration of our admission webhook: which pods the API server sends us, and how it finds us.

Only pods that name a resource under one of our prefixes are sent, so that a webhook that is down stops no other pod;
for those it fails closed. Servers without match conditions (before 1.28) drop them and would send every pod: there the
webhook must not be able to stop the cluster, so it fails open, and a GPU pod that was missed gets no grant.

Where the configuration has pods without GPUs told to see none (`overwriteEnv`), a second webhook gets those pods. It
fails open everywhere: it adds a word to a pod, and no pod may wait for that.

A third one gets workloads whose templates ask a fraction of a GPU. It fails open as well, because nothing comes of
that: a fraction that nobody has written anew is refused by the API server itself.
"""

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamina.control.comparing import includes
from lamina.dialects import hami, vocabularies
from lamina.dialects.cce import PERCENTAGE
from lamina.dialects.config import Config
from lamina.dialects.templates import WORKLOADS
from lamina.ports.kube import MUTATING_WEBHOOKS, Kube, NotFound, Object

log = logging.getLogger(__name__)

NAME = "lamina.dev"
PATH = "/mutate"
NAMESPACE = "lamina-system"
SERVICE = "lamina-admission"
_IGNORE_LABELS = ("lamina.dev/webhook", "hami.io/webhook")


def service_address() -> Mapping[str, Any]:
    """`clientConfig` for a webhook behind our Service."""
    return {"service": {"namespace": NAMESPACE, "name": SERVICE, "path": PATH, "port": 443}}


def url_address(host: str, port: int) -> Mapping[str, Any]:
    """`clientConfig` for a webhook that the API server reaches at an address of its own."""
    name = f"[{host}]" if ":" in host else host
    return {"url": f"https://{name}:{port}{PATH}"}


def webhook_configuration(config: Config, address: Mapping[str, Any], ca: bytes, *, policy: str = "Fail") -> Object:
    """The object to register. `ca` is PEM; `policy` is what happens to our pods while nobody answers."""
    asks = match_expression(config)
    templates = [_rule(group, resources, "CREATE", "UPDATE") for group, resources in WORKLOADS.items()]
    webhooks = [
        _webhook("pods", [_PODS], asks, policy, address, ca),
        _webhook("templates", templates, template_expression(config), "Ignore", address, ca),
    ]
    if config.hami.overwrite_env:
        webhooks.append(_webhook("env", [_PODS], f"!({asks})", "Ignore", address, ca))
    return {"metadata": {"name": NAME}, "webhooks": webhooks}


def _rule(group: str, resources: Sequence[str], *operations: str) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": list(resources),
        "scope": "Namespaced",
    }


_PODS = _rule("", ["pods"], "CREATE")


def _webhook(
    name: str, rules: Sequence[Mapping[str, Any]], condition: str, policy: str, address: Mapping[str, Any], ca: bytes
) -> Object:
    not_ignored = [{"key": label, "operator": "NotIn", "values": ["ignore"]} for label in _IGNORE_LABELS]
    own_name = "kubernetes.io/metadata.name"
    not_system = {"key": own_name, "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
    return {
        "name": f"{name}.{NAME}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {**address, "caBundle": base64.b64encode(ca).decode()},
        "rules": list(rules),
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [not_system, *not_ignored]},
        "objectSelector": {"matchExpressions": not_ignored},
        "matchConditions": [{"name": f"{name}-condition", "expression": condition}],
        "failurePolicy": policy,
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }


def match_expression(config: Config) -> str:
    """CEL: whether any container names a resource under a prefix of ours, misspelt ones included."""
    named = {name.partition("/")[0] + "/" for vocabulary in vocabularies(config) for name in vocabulary.all}
    prefixes = sorted(named | {"nvidia.com/"})
    ours = " || ".join(f"name.startsWith('{prefix}')" for prefix in prefixes)
    return _any_container("object.spec", lambda amounts: f"{amounts}.exists(name, {ours})")


def template_expression(config: Config) -> str:
    """CEL: whether a container of a template asks a fraction of a GPU, or carries what was written for one before."""
    count = hami(config).count

    def concerns(amounts: str) -> str:
        asked = f"'{count}' in {amounts}"
        fraction = f"{asked} && !string({amounts}['{count}']).matches('^[0-9]+$')"
        left = f"'{PERCENTAGE}' in {amounts} && !({asked} && string({amounts}['{count}']) == '0')"
        return f"(({fraction}) || ({left}))"

    of_job = "object.spec.jobTemplate.spec.template.spec"
    spec = f"has(object.spec.jobTemplate) ? {of_job} : object.spec.template.spec"
    return f"[{spec}].exists(spec, {_any_container('spec', concerns)})"


def _any_container(spec: str, condition: Callable[[str], str]) -> str:
    """CEL: whether what a container of the pod specification asks is as `condition` says of its limits or requests."""
    amounts = " || ".join(
        f"(has(c.resources.{field}) && {condition(f'c.resources.{field}')})" for field in ("limits", "requests")
    )
    asks = f"(c, has(c.resources) && ({amounts}))"
    return f"{spec}.containers.exists{asks} || (has({spec}.initContainers) && {spec}.initContainers.exists{asks})"


async def register(kube: Kube, config: Config, address: Mapping[str, Any], ca: bytes) -> bool:
    """Have the registration on the server as it should be; whether it was another one before.

    Raises Outside, Conflict where others write it too.

    Failing closed is asked for only of a server that is seen to keep the match conditions. One that drops them is sent
    them again at each look, which changes nothing until it has been upgraded.
    """
    first: Object | None = None
    try:
        first = present = await kube.get(MUTATING_WEBHOOKS, NAME)
    except NotFound:
        wanted = webhook_configuration(config, address, ca, policy="Ignore")
        present = await kube.create(MUTATING_WEBHOOKS, wanted)
    if not _keeps_conditions(present):
        present = await _write(kube, present, webhook_configuration(config, address, ca, policy="Ignore"))
    if _keeps_conditions(present):
        present = await _write(kube, present, webhook_configuration(config, address, ca))
    else:
        log.warning("This server has no match conditions: pods pass while admission is down, without a GPU")
    return first is None or present.get("webhooks") != first.get("webhooks")


def _keeps_conditions(present: Object) -> bool:
    webhooks = present.get("webhooks") or [{}]
    return bool(webhooks[0].get("matchConditions"))


async def _write(kube: Kube, present: Object, wanted: Object) -> Object:
    """Put `wanted` in the place of `present`, whose labels are those of whoever installed it."""
    if includes(present.get("webhooks"), wanted["webhooks"]):
        return present
    return await kube.replace(MUTATING_WEBHOOKS, wanted | {"metadata": present["metadata"]})
