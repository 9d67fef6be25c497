"""All findings of `lamina doctor` about one cluster."""

import re
from datetime import UTC, datetime

from lamina.configuration import Config
from lamina.core.component_names import WEBHOOKS
from lamina.dialects import ResourceNames, resource_names
from lamina.errors import Outside
from lamina.operations.doctor import unread_configurations
from lamina.operations.doctor.checks import CheckedObjects, findings
from lamina.operations.doctor.finding import Finding, State
from lamina.ports.kube import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    RESOURCE_SLICES,
    AlreadyExists,
    Kube,
    NotFound,
    Object,
    Refused,
    Resource,
)
from lamina.report import cluster_reader
from lamina.report.device_taint_rules import read_rules

_TEST_POD = "lamina-doctor"


async def examine(kube: Kube) -> list[Finding]:
    """All findings about a cluster. Raises BadInput where Lamina is not installed, Outside."""
    cluster = await cluster_reader.read(kube, claims=True)
    nodes, webhooks = (await kube.list(NODES)).items, (await kube.list(MUTATING_WEBHOOKS)).items
    slices, rules = await _listed(kube, RESOURCE_SLICES), await read_rules(kube)
    theirs = [
        found for namespace, name in unread_configurations.NAMES if (found := await _theirs(kube, namespace, name))
    ]
    objects = CheckedObjects(
        kube.lamina_namespace, nodes, webhooks, slices, rules, await _listed(kube, DEVICE_CLASSES), theirs
    )
    return [await webhook(kube, cluster.config, webhooks), *findings(cluster, objects, datetime.now(UTC))]


async def _listed(kube: Kube, resource: Resource) -> list[Object]:
    try:
        return (await kube.list(resource)).items
    except NotFound:
        return []  # before Kubernetes 1.34


async def _theirs(kube: Kube, namespace: str, name: str) -> Object | None:
    """A ConfigMap of another system; None where there is none, or where it may not be read."""
    try:
        return await kube.get(CONFIG_MAPS, name, namespace=namespace)
    except (NotFound, Refused):
        return None


async def webhook(kube: Kube, config: Config, registered: list[Object]) -> Finding:
    """Whether the webhook answers: it must refuse the test pod, which is deleted at once if it was admitted."""
    fix = "check the logs of the controller and of admission, and whether the API server reaches its Service"
    if not config.enabled:
        return Finding("webhook", State.WARNING, "the configuration has enabled: false", "set enabled: true")
    if not any(one["metadata"]["name"] == WEBHOOKS and one.get("webhooks") for one in registered):
        return Finding("webhook", State.FAILED, "it is not registered", fix)
    try:
        await kube.create(PODS, _test_pod(config), namespace="default")
    except AlreadyExists:
        pass  # left behind by an interrupted doctor
    except Outside as error:
        if _names(config).memory_percentage in str(error):
            return Finding("webhook", State.OK, "it answers, and refuses an invalid pod")
        failed = re.search(r'failed calling webhook "([^"]+)"', str(error))
        if failed and not failed[1].endswith(f".{WEBHOOKS}"):
            fix = f"{failed[1]} is not Lamina's webhook; repair or remove the system it belongs to"
        return Finding("webhook", State.FAILED, f"the API server returned: {error}", fix)
    await kube.delete(PODS, _TEST_POD, namespace="default", grace_s=0)
    return Finding("webhook", State.FAILED, "an invalid pod was admitted", fix)


def _test_pod(config: Config) -> Object:
    """A pod that requests 500 % of a GPU's memory, and that no scheduler would place if it were admitted."""
    names = _names(config)
    limits = {names.count: "1", names.memory_percentage: "500"}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {
        "metadata": {"name": _TEST_POD},
        "spec": {"containers": [container], "schedulingGates": [{"name": "lamina.dev/doctor"}]},
    }


def _names(config: Config) -> ResourceNames:
    """The names of a dialect in which a pod can request a percentage of memory."""
    return next(names for names in resource_names(config) if names.memory_percentage)
