"""Admission webhooks: called when they should be, and their answers honored."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import ApiError
from tests.kubectl import Kubectl
from tests.lab_api.apis import Bench
from tests.lab_api.hooks import Answer, Hook, allowed, denied
from tests.lab_api.servers import Threaded

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"


def _label(value: str) -> Object:
    return {"op": "add", "path": "/metadata/labels", "value": {"by": value}}


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    made = Hook(lambda request: allowed(_label("hook")))
    await made.start()
    yield made
    await made.stop()


async def _configure(bench: Bench, *hooks: Object, name: str = "pods", kind: str = MUTATING) -> None:
    await bench.create(kind, {"metadata": {"name": name}, "webhooks": list(hooks)})


async def test_a_webhook_changes_a_pod_before_it_is_stored(bench: Bench, hook: Hook) -> None:
    await _configure(bench, hook.config())
    pod = await bench.pod("a")
    assert pod["metadata"]["labels"] == {"by": "hook"}
    [request] = hook.requests
    assert request["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert (request["namespace"], request["name"], request["operation"]) == ("default", "a", "CREATE")
    assert (request["dryRun"], request["oldObject"]) == (False, None)
    assert request["object"]["spec"]["schedulerName"] == "default-scheduler", "it sees the defaults"
    assert request["object"]["metadata"]["uid"]


async def test_webhooks_are_asked_in_order_and_see_what_the_others_made(bench: Bench, hook: Hook) -> None:
    def answer(request: Object) -> Object:
        seen = (request["object"]["metadata"].get("labels") or {}).get("by", "")
        return allowed(_label(f"{seen}{hook.asked[-1]}"))

    hook.answer = answer
    plain = hook.config()
    x, y, z = ({**plain, "clientConfig": {**plain["clientConfig"], "url": f"{hook.url}?who={who}"}} for who in "xyz")
    await _configure(bench, z, name="b")
    await _configure(bench, x, y, name="a")
    assert (await bench.pod("p"))["metadata"]["labels"] == {"by": "xyz"}


async def test_what_a_webhook_makes_is_validated(bench: Bench, hook: Hook) -> None:
    hook.answer = lambda request: allowed({"op": "remove", "path": "/spec/containers/0/image"})
    await _configure(bench, hook.config())
    with pytest.raises(ApiError, match="image: Required value"):
        await bench.pod("a")
    assert bench.names("pods") == []


@pytest.mark.parametrize(
    ("answer", "message", "code"),
    [
        (denied("no GPU has that much"), "denied the request: no GPU has that much", 400),
        (denied("not you", code=403, reason="Forbidden"), "denied the request: not you", 403),
        ({"allowed": False}, "denied the request without explanation", 400),
    ],
)
async def test_a_refusal_is_passed_on(bench: Bench, hook: Hook, answer: Object, message: str, code: int) -> None:
    hook.answer = lambda request: answer
    await _configure(bench, hook.config())
    with pytest.raises(ApiError) as refused:
        await bench.pod("a")
    assert refused.value.message == f'admission webhook "pods.example.com" {message}'
    assert refused.value.code == code
    assert bench.names("pods") == []


async def test_validating_webhooks_see_the_final_object(bench: Bench, hook: Hook) -> None:
    await _configure(bench, hook.config())
    judge = Hook(lambda request: denied("too late"))
    await judge.start()
    await _configure(bench, judge.config(name="judge"), kind=VALIDATING)
    with pytest.raises(ApiError, match='admission webhook "judge" denied the request: too late'):
        await bench.pod("a")
    assert judge.requests[0]["object"]["metadata"]["labels"] == {"by": "hook"}
    await judge.stop()


async def test_warnings_reach_the_client(bench: Bench, hook: Hook) -> None:
    hook.answer = lambda request: allowed(warnings=["gpucores is ignored"])
    await _configure(bench, hook.config())
    await bench.pod("a")
    assert bench.warnings == ["gpucores is ignored"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: web.Response(status=500),
        lambda request: web.Response(text="hello"),
        lambda request: web.json_response({"response": {"allowed": True}}),
        lambda request: {"allowed": True, "uid": "another"},
        lambda request: {"allowed": True, "patch": "bm90aGluZw==", "patchType": "JSONPatch"},
        lambda request: allowed({"op": "remove", "path": "/nowhere"}),
        lambda request: {"allowed": True, "patch": "W10=", "patchType": "Other"},
    ],
)
async def test_invalid_answers_follow_the_failure_policy(bench: Bench, hook: Hook, answer: Answer) -> None:
    hook.answer = answer
    await _configure(bench, hook.config(failurePolicy="Ignore"))
    assert "labels" not in (await bench.pod("a"))["metadata"]
    await bench.delete(MUTATING, "pods")
    await _configure(bench, hook.config(failurePolicy="Fail"))
    with pytest.raises(ApiError, match="failed calling webhook") as refused:
        await bench.pod("b")
    assert refused.value.code == 500
    assert bench.names("pods") == ["a"]


async def test_a_webhook_that_is_down_fails_by_policy(bench: Bench, hook: Hook) -> None:
    await hook.stop()
    await _configure(bench, hook.config(failurePolicy="Ignore"))
    await bench.pod("a")
    await _configure(bench, hook.config(), name="strict")
    with pytest.raises(ApiError, match=r"failed to call webhook: Post .*connect: connection refused$"):
        await bench.pod("b")


async def test_a_webhook_with_another_certificate_is_not_trusted(bench: Bench, hook: Hook) -> None:
    other = Hook(lambda request: allowed())
    await _configure(bench, {**hook.config(), "clientConfig": {**other.config()["clientConfig"], "url": hook.url}})
    with pytest.raises(ApiError, match="certificate verify failed"):
        await bench.pod("a")
    assert hook.requests == []


RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({}, True),
        ({"rules": [{**RULE, "operations": ["*"]}]}, True),
        ({"rules": [{**RULE, "operations": ["UPDATE"]}]}, False),
        ({"rules": [{**RULE, "apiGroups": ["apps"]}]}, False),
        ({"rules": [{**RULE, "resources": ["*"]}]}, True),
        ({"rules": [{**RULE, "resources": ["pods/*"]}]}, True),
        ({"rules": [{**RULE, "resources": ["pods/status"]}]}, False),
        ({"rules": [{**RULE, "scope": "Cluster"}]}, False),
        ({"objectSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"objectSelector": {"matchLabels": {"app": "db"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'a'"}]}, True),
        ({"matchConditions": [{"name": "c", "expression": "request.operation == 'UPDATE'"}]}, False),
        ({"matchConditions": [{"name": "c", "expression": "oldObject == null"}]}, True),
        (
            {
                "matchConditions": [
                    {
                        "name": "gpu",
                        "expression": "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) "
                        "&& c.resources.limits.exists(k, k.startsWith('nvidia.com/')))",
                    }
                ]
            },
            False,
        ),
    ],
)
async def test_which_writes_concern_a_webhook(bench: Bench, hook: Hook, change: Object, asked: bool) -> None:
    await _configure(bench, hook.config(**change))
    await bench.pod("a", labels={"app": "web"})
    assert bool(hook.requests) is asked


@pytest.mark.parametrize("expression", ["object.spec.nothing.at.all", "object.metadata.name", "((("])
async def test_conditions_without_sense_fail_by_policy(bench: Bench, hook: Hook, expression: str) -> None:
    conditions = [{"name": "c", "expression": expression}]
    await _configure(bench, hook.config(matchConditions=conditions, failurePolicy="Ignore"))
    await bench.pod("a")
    await _configure(bench, hook.config(matchConditions=conditions), name="strict")
    with pytest.raises(ApiError, match="failed to evaluate match conditions"):
        await bench.pod("b")
    assert hook.requests == []


async def test_updates_and_deletions_show_both_states(bench: Bench, hook: Hook) -> None:
    hook.answer = lambda request: allowed()
    rule = {**RULE, "operations": ["UPDATE", "DELETE"], "resources": ["pods", "pods/status"]}
    await _configure(bench, hook.config(rules=[rule]), kind=VALIDATING)
    await bench.pod("a")
    await bench.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}})
    await bench.patch("pods", "a", {"status": {"phase": "Running"}}, subresource="status")
    await bench.delete("pods", "a")
    seen = [(each["operation"], each.get("subResource", ""), each["object"] is None) for each in hook.requests]
    assert seen == [("UPDATE", "", False), ("UPDATE", "status", False), ("DELETE", "", True)]
    assert "labels" not in hook.requests[0]["oldObject"]["metadata"]
    assert hook.requests[0]["object"]["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"clientConfig": {"service": {"name": "x", "namespace": "y"}}}, "this API has no services to route through"),
        ({"clientConfig": {"url": "http://127.0.0.1"}}, "'https' is the only allowed URL scheme"),
        ({"sideEffects": None}, "sideEffects: Required value"),
        ({"name": ""}, "webhooks\\[0\\].name: Required value"),
    ],
)
async def test_configurations_that_are_refused(bench: Bench, hook: Hook, change: Object, wanted: str) -> None:
    with pytest.raises(ApiError, match=wanted):
        await _configure(bench, hook.config(**change))


def test_kubectl_shows_refusals_and_warnings(lab: Threaded, kubectl: Kubectl) -> None:
    def answer(request: Object) -> Object:
        if request["name"] == "bad":
            return denied("gpumem-percentage must be 0 to 100, found 120")
        return allowed(warnings=["gpucores is ignored"])

    hook = Hook(answer)
    lab.do(hook.start())
    lab.create(MUTATING, {"metadata": {"name": "pods"}, "webhooks": [hook.config()]})
    refused = kubectl.refused("run", "bad", "--image=i:1")
    wanted = 'admission webhook "pods.example.com" denied the request: gpumem-percentage must be 0 to 100, found 120'
    assert wanted in refused
    done = kubectl.run("run", "good", "--image=i:1", "--dry-run=server")
    assert (done.returncode, done.stderr) == (0, "Warning: gpucores is ignored\n")
    assert hook.requests[-1]["dryRun"] is True
    lab.do(hook.stop())
    assert 'failed calling webhook "pods.example.com"' in kubectl.refused("run", "good", "--image=i:1")
    kubectl("delete", "mutatingwebhookconfigurations", "pods")
    kubectl("run", "good", "--image=i:1")
