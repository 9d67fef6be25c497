"""The registration: which pods are sent, how the webhook is found, what an older server makes of it."""

import base64
from typing import Any

import pytest

from lamina.admission.webhook_configuration import (
    match_expression,
    register,
    service_address,
    url_address,
    webhook_configuration,
)
from lamina.configuration import DEFAULT, Config, load
from lamina.core.component_names import DEFAULT_NAMESPACE as NAMESPACE
from lamina.ports.kube import MUTATING_WEBHOOKS, Object, Resource
from lamina.ports.kube.fake import FakeKube
from tests.controller.match_expressions import holds
from tests.worlds.objects import gpu_pod

SERVICE = service_address(NAMESPACE)

OTHER_NAMES = load("resourceName: example.com/gpu", "c")


def is_sent(pod: Object, config: Config) -> bool:
    return holds(match_expression(config), pod)


def with_init(**resources: Any) -> Object:
    pod = gpu_pod()
    pod["spec"]["initContainers"] = [{"name": "i", "resources": resources}]
    return pod


def without_resources() -> Object:
    pod = gpu_pod()
    del pod["spec"]["containers"][0]["resources"]
    return pod


@pytest.mark.parametrize(
    ("pod", "sent"),
    [
        (gpu_pod(gpu=1), True),
        (gpu_pod(gpumem=1), True),
        (gpu_pod(gpu_mem=1), True),
        (with_init(requests={"nvidia.com/gpu": "1"}), True),
        (with_init(limits={"nvidia.com/gpu": "1"}), True),
        (with_init(limits={"cpu": "1"}), False),
        (gpu_pod(), False),
        (without_resources(), False),
    ],
)
def test_only_pods_that_name_a_resource_under_our_prefixes_are_sent(pod: Object, sent: bool) -> None:
    assert is_sent(pod, DEFAULT) == sent


@pytest.mark.parametrize(
    ("key", "sent"),
    [
        ("gpu-fraction", True),
        ("gpu-fractions", True),
        ("gpu-memory", True),
        ("nvidia.com/container.main.gpu-memory.limit", True),
        ("gpu", False),
        ("nvidia.com/use-gputype", False),
    ],
)
def test_pods_with_an_annotation_that_requests_gpus_are_sent(key: str, sent: bool) -> None:
    pod = gpu_pod()
    pod["metadata"]["annotations"] = {"other": "x", key: "y"}
    assert is_sent(pod, DEFAULT) == sent


def test_the_prefixes_follow_the_configured_names() -> None:
    pod = gpu_pod()
    pod["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    assert is_sent(pod, OTHER_NAMES) and not is_sent(pod, DEFAULT)
    assert is_sent(gpu_pod(gpu=1), OTHER_NAMES)


def test_it_fails_closed_and_never_concerns_the_system() -> None:
    webhook, templates = webhook_configuration(DEFAULT, SERVICE, b"PEM", namespace=NAMESPACE)["webhooks"]
    assert templates["failurePolicy"] == "Ignore", "the API server refuses what it has not written again"
    assert webhook["failurePolicy"] == "Fail" and webhook["sideEffects"] == "None"
    assert webhook["rules"][0]["operations"] == ["CREATE"] and webhook["rules"][0]["resources"] == ["pods"]
    assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == b"PEM"
    assert webhook["clientConfig"]["service"]["namespace"] == "lamina-system"
    excluded = {e["key"]: e["values"] for e in webhook["namespaceSelector"]["matchExpressions"]}
    assert excluded["kubernetes.io/metadata.name"] == ["kube-system", "lamina-system"]
    assert excluded["hami.io/webhook"] == excluded["lamina.dev/webhook"] == ["ignore"]


def test_urls() -> None:
    assert url_address("127.0.0.1", 8443) == {"url": "https://127.0.0.1:8443/mutate"}
    assert url_address("::1", 1) == {"url": "https://[::1]:1/mutate"}


async def test_what_an_installation_made_is_filled_in_and_stays_its_own() -> None:
    kube = FakeKube()
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    await kube.create(MUTATING_WEBHOOKS, {"metadata": {"name": "lamina.dev", "labels": labels}})
    assert await register(kube, DEFAULT, SERVICE, b"ca")
    assert not await register(kube, DEFAULT, SERVICE, b"ca")
    (written,) = (await kube.list(MUTATING_WEBHOOKS)).items
    assert written["metadata"]["labels"] == labels
    assert written["webhooks"][0]["failurePolicy"] == "Fail"


async def test_registering_again_replaces() -> None:
    kube = FakeKube()
    for ca in (b"one", b"two"):
        await register(kube, DEFAULT, SERVICE, ca)
    (written,) = (await kube.list(MUTATING_WEBHOOKS)).items
    assert base64.b64decode(written["webhooks"][0]["clientConfig"]["caBundle"]) == b"two"
    assert written["webhooks"][0]["failurePolicy"] == "Fail"


async def test_a_registration_that_is_as_it_should_be_is_not_written() -> None:
    kube = FakeKube()
    for _ in range(2):
        await register(kube, DEFAULT, SERVICE, b"ca")
    before = [verb for verb, _, _ in kube.calls]
    await register(kube, DEFAULT, SERVICE, b"ca")
    assert [verb for verb, _, _ in kube.calls][len(before) :] == ["get"]


async def test_a_registration_that_was_changed_is_restored() -> None:
    kube = FakeKube()
    await register(kube, DEFAULT, SERVICE, b"ca")
    await kube.patch(MUTATING_WEBHOOKS, "lamina.dev", {"webhooks": []})
    await register(kube, DEFAULT, SERVICE, b"ca")
    (written,) = (await kube.list(MUTATING_WEBHOOKS)).items
    assert [webhook["failurePolicy"] for webhook in written["webhooks"]] == ["Fail", "Ignore"]


async def test_a_server_without_match_conditions_is_not_brought_to_a_halt() -> None:
    class Older(FakeKube):
        def _store(self, resource: Resource, before: Object | None, after: Object) -> Object:
            for webhook in after["webhooks"]:
                webhook.pop("matchConditions", None)
            return super()._store(resource, before, after)

    kube = Older()
    assert await register(kube, DEFAULT, SERVICE, b"ca")
    (written,) = (await kube.list(MUTATING_WEBHOOKS)).items
    assert written["webhooks"][0]["failurePolicy"] == "Ignore"
    assert not await register(kube, DEFAULT, SERVICE, b"ca"), "nothing to wait for before it is served"
    assert await register(kube, DEFAULT, SERVICE, b"another")
