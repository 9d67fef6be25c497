"""examples/idle-shares.yaml: idle shares are listed, their owner gets notice, and then the share is free again."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply
from tests.scenarios.labs import Lab, Object
from tests.scenarios.processes import kill, process_of
from tests.waiting import wait_until

WEB, KEPT, USED, UNMEASURED = "idle-shares", "idle-kept", "idle-used", "idle-unmeasured"
NOTICE = "lamina.dev/idle-notice"
AGE_S = 7200.0


def pod_that_may_go(name: str) -> str:
    """The pod of the example without the annotation that keeps it."""
    kept = (EXAMPLES / f"{WEB}.yaml").read_text().partition("---\n")[2]
    return kept.replace(KEPT, name).replace('lamina.dev/keep-idle: "true"', "example.com/note: none")


def listed(lab: Lab) -> list[str]:
    """The workloads that people find idle, an entry for each pod."""
    ended = lab.lamina("advise", "idle", "--hours", "0", "-o", "json")
    assert ended.returncode == 0, ended.stderr
    return sorted(row["workload"] for row in json.loads(ended.stdout))


def inventory_idle(lab: Lab) -> set[str]:
    spec = lab.read(f"/apis/lamina.dev/v1alpha1/inventories/{lab.node}")["spec"]
    return {each["podUID"] for each in spec.get("idle", ())}


def let_pass(lab: Lab) -> None:
    """Two hours for the agent: it starts again, and its accounts say that nothing has changed for so long."""
    path: Path = lab.machine.parent / "state" / "accounts.json"
    agent = process_of(lab, "lamina", "agent")
    assert agent is not None
    os.kill(agent, signal.SIGSTOP)  # so that it does not write meanwhile
    file = json.loads(path.read_text())
    for counter in file["book"]["busy"]:
        counter[-1] = time.time() - AGE_S
    path.write_text(json.dumps(file))
    kill(lab, "lamina", "agent")


def notices(lab: Lab) -> dict[str, str]:
    """The pods that have notice."""
    noted = {pod["metadata"]["name"]: pod["metadata"].get("annotations", {}).get(NOTICE, "") for pod in lab.pods()}
    return {name: end for name, end in noted.items() if end}


def deployment(lab: Lab) -> Object:
    return lab.read(f"/apis/apps/v1/namespaces/default/deployments/{WEB}")


def events(lab: Lab, reason: str) -> list[Any]:
    found: list[Any] = lab.read("/api/v1/namespaces/default/events")["items"]
    return [event["involvedObject"]["name"] for event in found if event["reason"] == reason]


def test_idle_shares_are_listed_and_reclaimed_after_notice(start_lab: StartLab) -> None:
    lab = start_lab("idle", config=(EXAMPLES / "configuration" / "v1alpha1" / f"{WEB}.yaml").read_text())
    apply(lab, WEB)
    lab.apply(pod_that_may_go(USED))
    lab.apply(pod_that_may_go(UNMEASURED).replace("        nvidia.com/gpucores: 20\n", ""))
    lab.settled("", {"Running": 5})
    everyone = sorted([WEB, WEB, KEPT, USED, UNMEASURED])
    wait_until(lambda: listed(lab) == everyone, lambda: str(listed(lab)))
    assert inventory_idle(lab) == set() and notices(lab) == {}, "none has been idle for an hour"

    let_pass(lab)
    wait_until(lambda: len(inventory_idle(lab)) == 5, lambda: str(inventory_idle(lab)))
    web = {pod["metadata"]["name"] for pod in lab.pods(f"app={WEB}")}
    wait_until(lambda: set(notices(lab)) == web | {USED, UNMEASURED}, lambda: str(notices(lab)))
    assert deployment(lab)["spec"]["replicas"] == 2 and set(events(lab, "IdleNotice")) >= web
    for pod in (USED, UNMEASURED):
        lab.kubectl("exec", pod, "--", "gpu-load", "--memory-mib", "100", "--seconds", "2")

    wait_until(lambda: deployment(lab)["spec"]["replicas"] == 0, lambda: f"{notices(lab)} {events(lab, 'IdleNotice')}")
    assert deployment(lab)["metadata"]["annotations"]["lamina.dev/replicas-before-idle"] == "2"
    left = {KEPT, USED, UNMEASURED}
    lab.settled("", {"Running": 3})
    wait_until(lambda: {grant["spec"]["pod"] for grant in lab.grants()} == left, "its shares are not free")
    wait_until(lambda: notices(lab) == {}, lambda: str(notices(lab)))
    wait_until(lambda: WEB in events(lab, "IdleShareReclaimed"), "no event says what became of it")

    lab.kubectl("scale", "deployment", WEB, "--replicas=2")
    lab.settled("", {"Running": 5})
    assert notices(lab) == {}, "a pod that has just begun is not idle"
