"""The dashboard of a lab: real watches, real metrics, and what it says when the lab has gone."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Lab

POD = """
apiVersion: v1
kind: Pod
metadata: {name: busy}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: example
    command: [gpu-load, --seconds, "1000", --memory-mib, "3000"]
    resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 8000}}
"""


def documents(address: str) -> Iterator[dict[str, Any]]:
    """The events that say something new."""
    with urllib.request.urlopen(f"{address}events", timeout=120) as stream:
        for line in stream:
            if line.startswith(b"data: ") and line != b"data: {}\n":
                yield json.loads(line.removeprefix(b"data: "))


def first(events: Iterator[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return next(event for event in events if wanted(event))


def in_use(event: dict[str, Any]) -> bool:
    shares = [share for pod in event["changes"]["pods"].values() if pod for share in pod["shares"]]
    return any((share["used_mib"] or 0) >= 3000 for share in shares)


def test_a_pod_its_use_and_the_end_of_the_lab(start_lab: StartLab) -> None:
    lab: Lab = start_lab("board")
    lab.apply(POD)
    command = [sys.executable, "-m", "lamina", "lab", "dashboard", "--name", lab.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=lab.environment) as process:
        assert process.stdout is not None
        try:
            events = documents(process.stdout.readline().split()[-1])
            (card,) = first(events, in_use)["changes"]["pods"].values()
            assert (card["name"], card["state"], card["node"]) == ("busy", "running", "node-0")
            assert lab.lamina("lab", "down", "--name", lab.name).returncode == 0
            assert "does not answer" in first(events, lambda event: bool(event["lost"]))["lost"]
        finally:
            process.terminate()
