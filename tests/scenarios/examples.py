"""The manifests of examples/, and what they start in a lab."""

import json
from pathlib import Path

from tests.scenarios.labs import Lab

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def apply(lab: Lab, name: str) -> None:
    lab.kubectl("apply", "-f", str(EXAMPLES / f"{name}.yaml"))


def smi(lab: Lab, pod: str, *more: str) -> str:
    return lab.kubectl("exec", pod, *more, "--", "nvidia-smi")


def running(lab: Lab, pod: str) -> None:
    said = lab.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=110s", check=False)
    assert "condition met" in said, f"{said}\n{lab.described()}"


def grant_of(lab: Lab, pod: str) -> dict[str, object]:
    grants = json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"]
    (found,) = [grant["spec"] for grant in grants if grant["spec"]["pod"] == pod]
    spec: dict[str, object] = found
    return spec
