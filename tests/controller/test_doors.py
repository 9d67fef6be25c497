"""Whatever is sent to admission and to the extender, it is answered in one line, and no line is a traceback."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina.controller.binding.binder import Binder
from lamina.controller.eviction.victims import PodVictims
from lamina.controller.scheduling.scheduler import Scheduler
from lamina.ports.kube import GRANTS, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.controller.admission_door import UNVERIFIED, review
from tests.controller.cluster import RunningController, running
from tests.distortion import distorted, nested
from tests.worlds.objects import admitted_pod, gpus
from tests.worlds.planted import planted

VERBS = ("filter", "filter-to-best", "prioritize", "preempt", "bind")
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "schedulerName": "default-scheduler",
        "containers": [
            {
                "name": "main",
                "env": [{"name": "A", "value": "1"}],
                "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}, "requests": {"cpu": "1"}},
                "securityContext": {"privileged": False},
            }
        ],
        "initContainers": [{"name": "first", "restartPolicy": "Always"}],
    },
    "status": {"phase": "Pending"},
}
PREFERRED: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": []}
CHOOSY = POD | {
    "spec": POD["spec"]
    | {
        "affinity": dict.fromkeys(("nodeAffinity", "podAffinity", "podAntiAffinity"), PREFERRED),
        "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule", "topologyKey": "zone", "maxSkew": 1}],
    }
}
NODES = {"items": [{"metadata": {"name": "node-0"}}]}
VICTIMS = {"node-0": {"pods": [{"metadata": {"uid": "v"}}], "numPDBViolations": 0}}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "filter": {"pod": POD, "nodenames": ["node-0"]},
    "filter-to-best": {"pod": CHOOSY, "nodenames": ["node-0", "node-1"]},
    "prioritize": {"pod": POD, "nodes": NODES},
    "preempt": {"pod": POD, "nodeNameToVictims": VICTIMS, "nodeNameToMetaVictims": {"n": {"pods": [{"uid": "v"}]}}},
    "bind": {"podName": "p", "podNamespace": "default", "podUID": "u", "node": "node-0"},
}
FRACTION = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "0.5"}}}]}
DEPLOYMENT = {"spec": {"template": {"spec": FRACTION}}}
CRON_JOB = {"spec": {"jobTemplate": {"spec": {"template": {"spec": FRACTION}}}}}
REVIEWED = {
    "pod": ("", "pods", POD),
    "deployment": ("apps", "deployments", DEPLOYMENT),
    "cron job": ("batch", "cronjobs", CRON_JOB),
}
NO_JSON = (b"", b"{", b"[]", b"\xff", b'"\\ud800"', nested(5000).encode(), b'{"pod": ' + nested(900).encode() + b"}")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    async with running(FakeKube(), tmp_path, ("node-0", gpus()), ("node-1", gpus(prefix="B-"))) as made:
        yield made


async def answered(cluster: RunningController, verb: str, body: bytes) -> tuple[int, str]:
    """The status and the text; `admit` goes to admission."""
    url = cluster.urls["admission"] if verb == "admit" else f"{cluster.urls['extenderHttp']}/{verb}"
    async with cluster.session.post(url, data=body, ssl=UNVERIFIED) as response:
        text = await response.text()
    assert len(text.splitlines()) == 1 and "Traceback" not in text, (verb, body, text)
    return response.status, text


@pytest.mark.parametrize("verb", VERBS)
async def test_any_arguments_are_answered(
    cluster: RunningController, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    statuses = {(await answered(cluster, verb, json.dumps(body).encode()))[0] for body in distorted(ARGUMENTS[verb])}
    assert statuses == {200, 400}
    assert not [record for record in caplog.records if record.exc_info], "no defect was found"


@pytest.mark.parametrize("kind", REVIEWED)
async def test_any_object_is_reviewed(cluster: RunningController, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    refused = 0
    for body in distorted(review(*REVIEWED[kind])):
        status, text = await answered(cluster, "admit", json.dumps(body).encode())
        assert status in (200, 400), (body, text)
        if status == 200:
            response = json.loads(text)["response"]
            assert response["uid"] == body["request"]["uid"]
            refused += not response["allowed"]
            assert response["allowed"] or len(response["status"]["message"].splitlines()) == 1
    assert refused > 20
    assert not [record for record in caplog.records if record.exc_info], "no defect was found"


async def test_what_is_no_json_is_answered_400(cluster: RunningController) -> None:
    for verb in (*VERBS, "admit"):
        for body in NO_JSON:
            assert (await answered(cluster, verb, body))[0] == 400, (verb, body[:20])


async def test_a_name_that_is_none_is_not_bound(cluster: RunningController) -> None:
    for name in ("", "..", "a/b", "a\x00", "A b", "ä", "x" * 300, "a\nb"):
        for field in ("podName", "podNamespace", "node"):
            status, text = await answered(cluster, "bind", json.dumps(ARGUMENTS["bind"] | {field: name}).encode())
            assert status == 400 and field in text


@pytest.mark.parametrize(
    ("verb", "owner", "method", "status"),
    [
        ("filter", Scheduler, "filter", 200),
        ("filter-to-best", Scheduler, "scores", 200),
        ("prioritize", Scheduler, "scores", 500),
        ("preempt", PodVictims, "preempt", 500),
        ("bind", Binder, "bind", 200),
    ],
)
async def test_a_defect_is_answered_and_logged_once(
    cluster: RunningController,
    verb: str,
    owner: type,
    method: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(owner, method, planted)
    for _ in range(3):
        answer = await answered(cluster, verb, json.dumps(ARGUMENTS[verb]).encode())
        assert answer[0] == status
        sentence = json.loads(answer[1])["error"] if status == 200 else answer[1]
        name = verb.removesuffix("-to-best")
        assert sentence == f"Lamina could not answer {name} because of a defect (Planted); its log has more"
    assert len([record for record in caplog.records if record.exc_info]) == 1


async def test_a_server_that_does_not_answer_is_named(cluster: RunningController) -> None:
    assert isinstance(cluster.kube, FakeKube)
    cluster.kube.failing["list"] = lambda resource, name: Unreachable("the server is\n away")
    status, text = await answered(cluster, "preempt", json.dumps(ARGUMENTS["preempt"]).encode())
    assert (status, text) == (500, "Lamina could not answer preempt: the server is away")


async def test_a_defect_after_a_grant_was_written_is_not_blamed_on_the_scheduler(
    cluster: RunningController, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise KeyError("metadata")

    monkeypatch.setattr(Binder, "_take_turn", missing)
    pod = await cluster.make(admitted_pod("p", gpumem=1000))
    assert "because of a defect (KeyError)" in await cluster.scheduler.bind(pod, "node-0")
    assert len((await cluster.kube.list(GRANTS)).items) == 1, "it is settled as one whose binding is not known"


async def test_what_is_right_is_still_answered(cluster: RunningController) -> None:
    for verb, arguments in ARGUMENTS.items():
        assert (await answered(cluster, verb, msgspec.json.encode(arguments)))[0] == 200
    for reviewed in REVIEWED.values():
        status, text = await answered(cluster, "admit", msgspec.json.encode(review(*reviewed)))
        assert status == 200 and json.loads(text)["response"]["allowed"], text
