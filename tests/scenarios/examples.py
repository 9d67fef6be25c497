"""The manifests of examples/, and what they start in a lab."""

import json
from pathlib import Path

from tests.scenarios.labs import Cluster, Lab

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def apply(lab: Cluster, name: str) -> None:
    lab.apply((EXAMPLES / f"{name}.yaml").read_text())


def smi(lab: Cluster, pod: str, *more: str) -> str:
    return lab.kubectl("exec", pod, *more, "--", "nvidia-smi")


def running(lab: Cluster, *pods: str) -> None:
    names = [f"pod/{name}" for name in pods]
    said = lab.kubectl("wait", "--for=condition=Ready", *names, "--timeout=110s", check=False)
    assert said.count("condition met") == len(pods), f"{said}\n{lab.described()}"


def grant_of(lab: Lab, pod: str) -> dict[str, object]:
    grants = json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]
    (found,) = [grant["spec"] for grant in grants if grant["spec"]["pod"] == pod]
    spec: dict[str, object] = found
    return spec
