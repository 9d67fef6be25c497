"""HAMi's variable for limits of compute reaches the grant, on the pod of examples/compute-limit.yaml."""

import json
from typing import Any

import yaml

from tests.scenarios.examples import EXAMPLES, grant_of, running
from tests.scenarios.labs import Lab


def test_hamis_variable_caps_a_container_at_its_share(lab: Lab) -> None:
    manifest = yaml.safe_load((EXAMPLES / "compute-limit.yaml").read_text())
    manifest["metadata"] = {"name": "forced", "namespace": "default"}
    manifest["spec"]["containers"][0]["env"] = [{"name": "GPU_CORE_UTILIZATION_POLICY", "value": "force"}]
    lab.apply(json.dumps(manifest))
    running(lab, "forced")
    grant: dict[str, Any] = grant_of(lab, "forced")
    (container,) = grant["containers"]
    assert (container["shares"][0]["cores"], container["shares"][0]["mostCores"]) == (20, 20)
