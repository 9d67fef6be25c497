"""Hiding GPUs as the API server meets it: which pods it sends, where to, and what it is answered."""

import base64
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec
import pytest

from lamina.admission.review import ALLOWED, AdmissionRequest, review, review_visibility
from lamina.admission.webhook_configuration import PATH, service_address, url_address, webhook_configuration
from lamina.configuration import DEFAULT, load
from lamina.controller.leadership import election
from lamina.core.component_names import DEFAULT_NAMESPACE as NAMESPACE
from lamina.ports.kube import MUTATING_WEBHOOKS, NAMESPACES, PODS, Object
from lamina.ports.kube.client import connect
from lamina_lab.api.http.kubelets import UnixKubelets
from lamina_lab.api.server import serve as serve_api
from tests.controller.admission_worker import UNVERIFIED, working
from tests.controller.cluster import running
from tests.waiting import until
from tests.worlds.objects import gpu_pod

SERVICE = service_address(NAMESPACE)

HEADER = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n"
HIDES = load(f"{HEADER}admission: {{hideGpus: true}}", "c")
CLOSED = f"{HEADER}admission: {{hideGpus: true, hidingFailurePolicy: Fail}}"
NONE = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}


def asked(pod: Object, **more: Any) -> AdmissionRequest:
    return msgspec.convert({"uid": "1", "object": pod, "resource": {"resource": "pods"}, **more}, AdmissionRequest)


def with_ephemeral(*names: str) -> Object:
    pod = gpu_pod()
    pod["spec"] |= {"nodeName": "node-0", "ephemeralContainers": [{"name": name} for name in names]}
    return pod


def test_new_pods_and_new_ephemeral_containers_are_changed() -> None:
    patch = review_visibility(asked(gpu_pod(scheduler="mine")), HIDES).patch
    assert patch == ({"op": "add", "path": "/spec/containers/0/env", "value": [NONE]},)
    change = {"operation": "UPDATE", "subResource": "ephemeralcontainers"}
    request = asked(with_ephemeral("old", "new"), oldObject=with_ephemeral("old"), **change)
    patch = review_visibility(request, HIDES).patch
    assert patch == ({"op": "add", "path": "/spec/ephemeralContainers/1/env", "value": [NONE]},)
    assert len(review_visibility(asked(with_ephemeral("old", "new"), **change), HIDES).patch) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"operation": "UPDATE"},
        {"operation": "UPDATE", "subResource": "resize"},
        {"operation": "CREATE", "subResource": "binding"},
        {"object": None},
    ],
)
def test_nothing_else_is(more: dict[str, Any]) -> None:
    assert review_visibility(asked(**{"pod": gpu_pod(), **more}), HIDES) == ALLOWED


def test_nothing_is_hidden_by_default() -> None:
    odd = gpu_pod()
    odd["metadata"]["annotations"] = {"cdi.k8s.io/x": "y"}
    assert review_visibility(asked(odd), DEFAULT) == ALLOWED
    assert not review_visibility(asked(odd), HIDES).allowed
    assert review(odd, HIDES) == (ALLOWED, None), "the other webhook has nothing to do with it"


def test_a_malformed_pod_is_refused_in_one_sentence() -> None:
    for pod in ({}, {"spec": {}}, {"spec": {"containers": [{"name": "a", "volumeMounts": [1]}]}}):
        verdict = review_visibility(asked(pod), HIDES)
        assert not verdict.allowed and verdict.message.startswith("the pod is malformed")


def test_only_namespaces_are_exempt() -> None:
    webhooks = webhook_configuration(HIDES, SERVICE, b"PEM", namespace=NAMESPACE)["webhooks"]
    assert [webhook["name"] for webhook in webhooks] == ["pods.lamina.dev", "templates.lamina.dev", "hiding.lamina.dev"]
    hiding = webhooks[2]
    assert "objectSelector" not in hiding and "matchConditions" not in hiding
    assert hiding["namespaceSelector"] == webhooks[0]["namespaceSelector"]
    sent = [
        (operation, name) for rule in hiding["rules"] for name in rule["resources"] for operation in rule["operations"]
    ]
    assert sent == [("CREATE", "pods"), ("UPDATE", "pods/ephemeralcontainers")]
    assert webhooks[:2] == webhook_configuration(DEFAULT, SERVICE, b"PEM", namespace=NAMESPACE)["webhooks"]


def test_it_has_a_path_of_its_own() -> None:
    for address, path in ((SERVICE, ("service", "path")), (url_address("::1", 1), ("url",))):
        client: Any = webhook_configuration(HIDES, address, b"PEM", namespace=NAMESPACE)["webhooks"][2]["clientConfig"]
        for key in path:
            client = client[key]
        assert client in ("/hide-gpus", "https://[::1]:1/hide-gpus")


def test_an_administrator_chooses_what_becomes_of_pods_during_an_outage() -> None:
    for config, policy in ((HIDES, "Ignore"), (load(CLOSED, "c"), "Fail")):
        for given in ("Ignore", "Fail"):
            webhooks = webhook_configuration(config, SERVICE, b"PEM", namespace=NAMESPACE, policy=given)["webhooks"]
            assert [webhook["failurePolicy"] for webhook in webhooks] == [given, "Ignore", policy]


async def test_the_worker_answers_at_both_paths() -> None:
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    request = {"uid": "1", "operation": "CREATE", "namespace": "default", "object": gpu_pod(scheduler="mine")}
    async with working(HIDES) as worked:
        client = await worked.client()
        for path, patched in (("/mutate", False), ("/hide-gpus", True)):
            client.post(msgspec.json.encode({**body, "request": request}), path)
            status, answer = await client.answer()
            response = msgspec.json.decode(answer)["response"]
            assert status == 200 and response["allowed"] and ("patch" in response) == patched
    patch = msgspec.json.decode(base64.b64decode(response["patch"]))
    assert jsonpatch.apply_patch(gpu_pod(), patch)["spec"]["containers"][0]["env"] == [NONE]


async def test_neither_labels_nor_schedulers_nor_nodes_show_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the lab's API server, which applies selectors and patches."""
    monkeypatch.setattr(election, "LEADS_S", 600.0)  # no other replica wants to lead, however rarely this one renews
    server = await serve_api(UnixKubelets(lambda node: tmp_path / node))
    server.write_kubeconfig(tmp_path / "kubeconfig")
    (config := tmp_path / "config.yaml").write_text(CLOSED)
    kube = await connect(tmp_path / "kubeconfig")
    async with running(kube, tmp_path, config=config) as cluster:
        await until(lambda: _hides(cluster.kube), task=cluster.task)
        async with cluster.session.get(cluster.urls["admission"].replace(PATH, "/healthz"), ssl=UNVERIFIED) as response:
            assert response.status == 200, "connections wait until it is served"
        plain = gpu_pod("plain", scheduler="mine")
        plain["metadata"]["labels"] = {"lamina.dev/webhook": "ignore", "hami.io/webhook": "ignore"}
        plain["spec"]["nodeName"] = "node-0"
        assert (await kube.create(PODS, plain))["spec"]["containers"][0]["env"] == [NONE]
        labels = {"lamina.dev/webhook": "ignore"}
        await kube.create(NAMESPACES, {"metadata": {"name": "daemons", "labels": labels}})
        daemon = gpu_pod("daemon", namespace="daemons")
        assert "env" not in (await kube.create(PODS, daemon))["spec"]["containers"][0]
        share = await kube.create(PODS, gpu_pod("share", gpumem=1000))
        assert "env" not in share["spec"]["containers"][0]
    await kube.close()
    await server.close()


async def _hides(kube: Any) -> bool:
    return any(len(one.get("webhooks") or ()) == 3 for one in (await kube.list(MUTATING_WEBHOOKS)).items)
