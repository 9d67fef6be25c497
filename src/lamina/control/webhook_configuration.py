"""The registration of our admission webhook: which pods the API server sends us, and how it finds us.

Only pods that name a resource under one of our prefixes are sent, so that a webhook that is down stops no other pod;
for those it fails closed. Servers without match conditions (before 1.28) drop them and would send every pod: there the
webhook must not be able to stop the cluster, so it fails open, and a GPU pod that was missed gets no grant.
"""

import base64
import logging
from collections.abc import Mapping
from typing import Any

from lamina.dialects import resource_names
from lamina.dialects.config import Config
from lamina.ports.kube import MUTATING_WEBHOOKS, AlreadyExists, Kube, NotFound, Object

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
    not_ignored = [{"key": label, "operator": "NotIn", "values": ["ignore"]} for label in _IGNORE_LABELS]
    own_name = "kubernetes.io/metadata.name"
    not_system = {"key": own_name, "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    webhook = {
        "name": f"pods.{NAME}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {**address, "caBundle": base64.b64encode(ca).decode()},
        "rules": [{**rule, "scope": "Namespaced"}],
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [not_system, *not_ignored]},
        "objectSelector": {"matchExpressions": not_ignored},
        "matchConditions": [{"name": "asks-for-gpus", "expression": match_expression(config)}],
        "failurePolicy": policy,
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }
    return {"metadata": {"name": NAME}, "webhooks": [webhook]}


def match_expression(config: Config) -> str:
    """CEL: whether any container names a resource under a prefix of ours, misspelt ones included."""
    prefixes = sorted({name.partition("/")[0] + "/" for name in resource_names(config).all} | {"nvidia.com/"})
    ours = " || ".join(f"name.startsWith('{prefix}')" for prefix in prefixes)
    amounts = " || ".join(
        f"(has(c.resources.{field}) && c.resources.{field}.exists(name, {ours}))" for field in ("limits", "requests")
    )
    asks = f"(c, has(c.resources) && ({amounts}))"
    init = f"(has(object.spec.initContainers) && object.spec.initContainers.exists{asks})"
    return f"object.spec.containers.exists{asks} || {init}"


async def register(kube: Kube, config: Config, address: Mapping[str, Any], ca: bytes) -> None:
    """Write the registration. Raises Outside where that fails."""
    written = await _write(kube, webhook_configuration(config, address, ca))
    if not written["webhooks"][0].get("matchConditions"):
        log.warning("This server has no match conditions: pods pass while admission is down, without a GPU")
        await _write(kube, webhook_configuration(config, address, ca, policy="Ignore"))


async def _write(kube: Kube, wanted: Object) -> Object:
    try:
        return await kube.create(MUTATING_WEBHOOKS, wanted)
    except AlreadyExists:
        pass
    try:
        return await kube.replace(MUTATING_WEBHOOKS, wanted)
    except NotFound:
        return await kube.create(MUTATING_WEBHOOKS, wanted)
