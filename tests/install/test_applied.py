"""What `lamina install` prints is accepted by kubectl and an API server, also a second time; the parts add to it."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.controller.leadership.label import LeaderLabel
from lamina.core.component_names import LEADER_LABEL
from lamina.ports.clock import SystemClock
from lamina.ports.kube import MUTATING_WEBHOOKS, PODS
from lamina.ports.kube.client import connect
from lamina.ports.kube.fake import FakeKube
from tests.controller.cluster import running
from tests.kubectl import Kubectl
from tests.lab_api.servers import Threaded
from tests.waiting import until


def printed(*arguments: str) -> str:
    command = [
        sys.executable,
        "-m",
        "lamina",
        "install",
        "--set",
        "image.repository=registry.example/lamina",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def changed(reported: str) -> list[str]:
    """What kubectl says it changed, without budgets of disruptions, which it always says of them."""
    lines = [line for line in reported.splitlines() if not line.startswith("poddisruptionbudget")]
    return [line for line in lines if not line.endswith(" unchanged")]


def test_a_server_takes_it_twice_and_changes_nothing_the_second_time(kubectl: Kubectl) -> None:
    manifests = printed("--kubeconfig", kubectl.environment["KUBECONFIG"])
    first = kubectl("apply", "-f", "-", stdin=manifests).splitlines()
    assert len(first) == len(list(yaml.safe_load_all(manifests)))
    assert [line for line in first if not line.endswith(" created")] == ["namespace/lamina-system configured"]
    assert "kube-scheduler:v1.34.0" in manifests  # as the lab's server calls itself
    assert changed(kubectl("apply", "-f", "-", stdin=manifests)) == []


async def test_what_the_control_part_fills_in_survives_another_apply(
    lab: Threaded,
    kubectl: Kubectl,
    tmp_path: Path,
) -> None:
    manifests = printed("--kube-version", "1.34.0")
    await asyncio.to_thread(kubectl, "apply", "-f", "-", stdin=manifests)
    kube = await connect(Path(kubectl.environment["KUBECONFIG"]))

    async def filled() -> Any:
        return (await kube.get(MUTATING_WEBHOOKS, "lamina.dev")).get("webhooks")

    async def unchanged() -> bool:
        """While the controller starts, it may fill them in once more. An apply that drops them changes them always."""
        before = await filled()
        reported = await asyncio.to_thread(kubectl, "apply", "-f", "-", stdin=manifests)
        return changed(reported) == [] and await filled() == before

    try:
        async with running(kube, tmp_path):
            await until(filled)
            await until(unchanged)
    finally:
        await kube.close()


@pytest.mark.parametrize("name", ["a", "b"])
async def test_the_label_is_on_the_leader_alone(name: str) -> None:
    kube = FakeKube()
    for pod, labels in (("a", {}), ("b", {}), ("dead", {LEADER_LABEL: "true"})):
        await kube.create(PODS, {"metadata": {"name": pod, "namespace": "lamina-system", "labels": labels}})

    async def labelled() -> set[str]:
        return {pod["metadata"]["name"] for pod in (await kube.list(PODS, labels=LEADER_LABEL)).items}

    label = LeaderLabel(kube, SystemClock(), name)
    await label.update(True)
    assert await labelled() == {name}
    await label.update(False)
    assert await labelled() == set()


async def test_the_label_follows_who_leads() -> None:
    kube, leads = FakeKube(), False
    await kube.create(PODS, {"metadata": {"name": "a", "namespace": "lamina-system"}})
    task = asyncio.create_task(LeaderLabel(kube, SystemClock(), "a").run(lambda: leads))
    for leads in (True, False, True):

        async def reported(wanted: bool = leads) -> bool:
            return bool((await kube.list(PODS, labels=LEADER_LABEL)).items) == wanted

        await until(reported, task=task)
    task.cancel()


async def test_a_leader_whose_label_was_taken_away_gets_it_back_and_writes_nothing_else() -> None:
    kube = FakeKube()
    await kube.create(PODS, {"metadata": {"name": "a", "namespace": "lamina-system"}})
    task = asyncio.create_task(LeaderLabel(kube, SystemClock(), "a", check_s=0.0).run(lambda: True))

    async def labelled() -> bool:
        return bool((await kube.list(PODS, labels=LEADER_LABEL)).items)

    for _ in range(2):
        await until(labelled, task=task)
        await kube.patch(PODS, "a", {"metadata": {"labels": {LEADER_LABEL: None}}}, namespace="lamina-system")
    await until(labelled, task=task)
    kube.calls.clear()

    async def looked() -> bool:
        return sum(verb == "list" for verb, *_ in kube.calls) >= 3

    await until(looked, task=task)
    assert {verb for verb, *_ in kube.calls} == {"list"}
    task.cancel()


async def test_a_replica_that_is_no_pod_needs_no_label() -> None:
    await LeaderLabel(FakeKube(), SystemClock(), "laptop").update(True)
