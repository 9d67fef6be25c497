"""A whole controller among objects that only the API server has checked: honest pods are served, and nothing ends.

What cannot be used is set aside: logged with its name, counted, and reported in an event.
"""

import asyncio
import itertools
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lamina.dialects.templates import WORKLOADS
from lamina.ports.clock import FakeClock
from lamina.ports.kube import EVENTS, INVENTORIES, PODS, Object, Resource
from lamina.ports.kube.fake import FakeKube
from lamina.ports.set_aside import SetAside
from tests.controller.admission_door import UNVERIFIED
from tests.controller.cluster import RunningController, running
from tests.controller.trials import EVERY_LOOP_S, set_aside, works
from tests.hostile_objects import values
from tests.hostile_objects.objects import SEEDS, objects, put
from tests.hostile_objects.unusable import is_unusable, refusal
from tests.waiting import until
from tests.worlds.objects import gpus

HONEST = "node-0"
OBJECTS = 60


def review(random: Random, pod: Object) -> bytes:
    """The body of a request to admission about the pod, with requests that the API server never sends among them."""
    group, resource, obj = random.choice((("", "pods", pod), ("", "pods", pod), _workload(random, pod)))
    request: dict[str, Any] = {
        "uid": random.choice(("1", values.text(random), "x" * 100_000)),
        "operation": random.choice(("CREATE", "CREATE", "UPDATE", "DELETE", "CONNECT", values.text(random))),
        "namespace": random.choice(("default", "kube-system", values.text(random))),
        "subResource": random.choice(("", "", "ephemeralcontainers", "status", values.text(random))),
        "resource": {"group": group, "version": "v1", "resource": resource},
        "object": obj,
        "oldObject": random.choice((None, obj, {})),
        "userInfo": {"username": values.text(random), "groups": [values.text(random)] * random.choice((0, 1, 5000))},
        "dryRun": random.choice((True, False)),
    }
    kept = values.sparse(random, request, "uid", "object")
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": kept}).encode()


def _workload(random: Random, pod: Object) -> tuple[str, str, Object]:
    group = random.choice(sorted(WORKLOADS))
    resource = random.choice(sorted(WORKLOADS[group]))
    template = {"template": {"metadata": pod["metadata"], "spec": pod["spec"]}}
    spec = {"jobTemplate": {"spec": template}} if resource == "cronjobs" else template
    return group, resource, {"metadata": {"name": values.name(random)}, "spec": spec}


async def answered(cluster: RunningController, pod: Object) -> None:
    """What kube-scheduler asks about a pending pod gets an answer of one line."""
    meta = pod["metadata"]
    binding = {"podName": meta["name"], "podNamespace": meta["namespace"], "podUID": meta["uid"], "node": "odd-0"}
    for verb in ("filter", "prioritize", "bind"):
        body = binding if verb == "bind" else {"pod": pod, "nodenames": [HONEST, "odd-0", "odd-1"]}
        asking = asyncio.create_task(asked(cluster, verb, body))
        await until(asking.done, clock=cluster.clock)  # a bind waits for its turn by the clock
        status, text = asking.result()
        assert status in (200, 400), (verb, status, text[:500])
        assert len(text.splitlines()) == 1 and "Traceback" not in text, (verb, text[:500])
        if verb == "filter" and status == 200 and refusal(pod):
            assert not json.loads(text).get("nodenames"), "a pod whose request is wrong fits no node"


async def asked(cluster: RunningController, verb: str, body: object) -> tuple[int, str]:
    async with cluster.session.post(f"{cluster.urls['extenderHttp']}/{verb}", json=body) as response:
        return response.status, await response.text()


async def admitted(cluster: RunningController, random: Random, pod: Object) -> None:
    """What admission is asked about the pod, or a workload with it, gets an answer with one sentence."""
    body = review(random, pod)
    async with cluster.session.post(cluster.urls["admission"], data=body, ssl=UNVERIFIED) as response:
        text = await response.text()
    assert response.status in (200, 400, 413), (response.status, text[:500])
    sentence = json.loads(text)["response"].get("status", {}).get("message", "") if response.status == 200 else text
    assert "Traceback" not in sentence and "\n" not in sentence.strip(), sentence[:500]


async def check_reported(cluster: RunningController, unusable: set[tuple[Resource, str]], log: str) -> None:
    """Each of these was logged and reported, and counts for its kind."""
    counts = await set_aside(cluster)
    events = {each["involvedObject"]["name"] for each in (await cluster.kube.list(EVENTS)).items}
    for resource, name in unusable:
        assert f"Setting aside {resource.plural} {name}:" in log
        assert name.rpartition("/")[2] in events, (resource.plural, name)
    for kind in {resource for resource, _ in unusable}:
        assert counts[kind.plural] >= sum(resource == kind for resource, _ in unusable)


async def survive(seed: int, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Fails if honest pods are not served, if a loop has ended, or if the log shows a defect."""
    random, unusable = Random(seed), set()
    async with running(FakeKube(), folder, (HONEST, gpus()), clock=FakeClock()) as cluster:
        for number, (resource, obj) in enumerate(objects(seed, OBJECTS, [HONEST])):
            if resource is PODS and obj["spec"].get("nodeName") == HONEST:
                obj["status"] = {}  # Containers that kubelet has started there may rightly have GPUs without a grant.
            made = await put(cluster.kube, resource, obj)
            if is_unusable(resource, made):
                unusable.add((resource, "/".join(filter(None, map(made["metadata"].get, ("namespace", "name"))))))
            if resource is PODS:
                await admitted(cluster, random, made)
            if resource is PODS and not made["spec"].get("nodeName"):
                await answered(cluster, made)
            if number % 20 == 19:
                await works(cluster, f"honest-{number}")
        assert isinstance(cluster.clock, FakeClock)
        await cluster.clock.advance(EVERY_LOOP_S)
        await works(cluster, "honest")
        kinds = set(await set_aside(cluster))
        assert "loop" not in kinds, "an object has stopped a loop"
        await check_reported(cluster, unusable, caplog.text)
    defects = [record.getMessage()[:500] for record in caplog.records if record.exc_info]
    assert not defects, "an object met a defect"


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_controller_among_odd_objects(seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await survive(seed, tmp_path, caplog)


async def test_a_kind_that_is_not_set_aside_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = SetAside.add

    def raising(self: Any, kind: str, name: str, error: Exception) -> bool:
        if kind == INVENTORIES.plural:
            raise error
        return add(self, kind, name, error)

    def is_spoiled(seed: int) -> bool:
        made = objects(seed, OBJECTS, [HONEST])
        return any(resource is INVENTORIES and is_unusable(resource, obj) for resource, obj in made)

    monkeypatch.setattr(SetAside, "add", raising)
    with pytest.raises(AssertionError, match="loop"):
        await survive(next(filter(is_spoiled, itertools.count())), tmp_path, caplog)
