"""A Prometheus scrapes all components of a lab: every query has an answer, and an alert follows what happens."""

import json
import math
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.install.telemetry.alerts import ALERTS
from lamina.install.telemetry.dashboards import DASHBOARDS
from lamina.install.telemetry.rules import RECORDED, rules_text
from tests.install.promql import read
from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

RARE = {
    "lamina_objects_set_aside_total",
    "lamina_defragmentation_total",
    "lamina_mig_memory_used_bytes",
    "lamina_mig_healthy",
    "lamina_mps_ready",
    "lamina_gpu_price_per_hour",
    "lamina_pods_without_grant",
    *(f"lamina_claim_{what}" for what in ("memory_used_bytes", "memory_limit_bytes", "utilization_percent")),
    *(f"lamina_claim_{what}_total" for what in ("waited_seconds", "memory_refusals")),
}
"""Series that this lab does not have: it has no MIG, MPS, prices and claims, and nothing in it is wrong."""
OTHERS = {
    "hami_gpu_memory_limit_bytes",
    "hami_gpu_memory_allocated_bytes",
    "hami_gpu_shared_count",
    "hami_host_gpu_memory_used_bytes",
    "hami_host_gpu_utilization_ratio",
    "hami_node_gpu_memory_allocated_ratio",
    "hami_gpu_core_allocated_ratio",
    "hami_vgpu_memory_used_bytes",
    "hami_vgpu_memory_limit_bytes",
    "hami_container_device_utilization_ratio",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
}
"""What docs/how-to/monitor.md says that dashboards made for HAMi and DCGM find."""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers:
  - name: main
    image: cuda
    command: [sleep, "86400"]
    resources: {{limits: {{nvidia.com/gpu: {gpus}, nvidia.com/gpumem: 1000, nvidia.com/gpucores: 10}}}}
"""


class Prometheus:
    """One that runs, asked by its HTTP API."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str, **parameters: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
            return json.load(answer)["data"]

    def value(self, query: str) -> list[Any]:
        """The samples of a query for this moment; a dashboard's variables select everything."""
        for variable, text in (("$__rate_interval", "1m"), ("$node", ".*"), ("$namespace", ".*")):
            query = query.replace(variable, text)
        found: list[Any] = self.ask("query", query=query)["result"]
        return found

    def active(self) -> set[str]:
        """The names of alerts that fire, or will if nothing changes."""
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"]}

    @property
    def answers(self) -> bool:
        try:
            return bool(self.ask("status/buildinfo"))
        except OSError:
            return False


def configuration(lab: Lab, folder: Path) -> Path:
    """As an operator configures it, with the labels of the target that those of Lamina must win against."""
    lines = lab.lamina("lab", "metrics", "--name", lab.name).stdout.splitlines()[1:]
    targets = [urllib.parse.urlsplit(url) for _, url in map(str.split, lines)]
    jobs = [
        {
            "job_name": f"component-{index}",
            "honor_labels": True,
            "scheme": target.scheme,
            "static_configs": [
                {"targets": [target.netloc], "labels": {"namespace": "lamina-system", "pod": f"of-lamina-{index}"}}
            ],
        }
        for index, target in enumerate(targets)
    ]
    (folder / "rules.yaml").write_text(rules_text())
    path = folder / "prometheus.yaml"
    often = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
    path.write_text(yaml.safe_dump({"global": often, "rule_files": ["rules.yaml"], "scrape_configs": jobs}))
    return path


@pytest.fixture(scope="module")
def lab(start_lab: StartLab) -> Lab:
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus on PATH: install the package prometheus")
    return start_lab("watched", config="health: {recoverySeconds: 600}")


@pytest.fixture(scope="module")
def prometheus(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [
        "prometheus",
        f"--config.file={configuration(lab, folder)}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    made = Prometheus(port)
    wait_until(lambda: made.answers, (folder / "log").read_text)
    yield made
    process.terminate()
    process.wait(60)


def test_every_query_has_an_answer(lab: Lab, prometheus: Prometheus) -> None:
    lab.apply(POD.format(name="runs", gpus=1))
    lab.settled("", {"Running": 1})
    lab.apply(POD.format(name="waits", gpus=3))
    lab.kubectl("exec", "runs", "--", "gpu-load", "--memory-mib", "100", "--seconds", "10")  # lengths of launches
    queries = [query.expr for _, _, panels in DASHBOARDS.values() for panel in panels for query in panel.queries]
    queries += [*RECORDED.values(), *(alert.expr for alert in ALERTS)]
    recorded = {name for name, query in RECORDED.items() if not RARE & read(query).matched.keys()}
    wanted = {name for query in queries for name in read(query).matched} - RARE | OTHERS | recorded

    def missing() -> set[str]:
        return wanted - set(prometheus.ask("label/__name__/values"))

    wait_until(lambda: not missing(), lambda: f"no series of {sorted(missing())}")
    for query in queries:
        prometheus.value(query)  # raises for a query with a mistake
    assert all(target["health"] == "up" for target in prometheus.ask("targets")["activeTargets"])
    found = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert len(found) == len(RECORDED) + len(ALERTS) and {rule["health"] for rule in found} == {"ok"}
    namespaces = {each["metric"]["namespace"] for each in prometheus.value("lamina_container_memory_limit_bytes")}
    assert namespaces == {"default"}, "the labels of the target hide those of Lamina"


def test_a_pod_that_fits_nowhere_is_counted_with_its_cause(lab: Lab, prometheus: Prometheus) -> None:
    def causes() -> set[str]:
        return {each["metric"]["cause"] for each in prometheus.value("lamina_pods_pending > 0")}

    wait_until(lambda: causes() == {"count"}, lambda: f"causes are {causes()}")
    lab.delete_workloads()
    wait_until(lambda: not causes(), lambda: f"causes are {causes()}")


def test_the_example_of_an_autoscaler_asks_for_pods_by_what_they_use(lab: Lab, prometheus: Prometheus) -> None:
    """Its query as prometheus-adapter fills it in, and the replicas by the formula of HorizontalPodAutoscaler."""
    folder = EXAMPLES / "autoscaling"
    deployment, scaler = yaml.safe_load_all((folder / "hpa.yaml").read_text())
    (rule,) = yaml.safe_load((folder / "prometheus-adapter.yaml").read_text())["rules"]["custom"]
    (metric,) = scaler["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == rule["name"]["as"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    (main,) = deployment["spec"]["template"]["spec"]["containers"]
    main["command"] = ["gpu-load", "--memory-mib", "100", "--seconds", "600"]
    lab.apply(yaml.safe_dump(deployment))
    lab.settled("app=autoscaled", {"Running": 1})
    words = {"Series": "lamina_container_busy_seconds_total", "GroupBy": "namespace,pod"}
    words["LabelMatchers"] = 'namespace="default",pod=~"autoscaled-.*"'
    query = rule["metricsQuery"]
    for word, text in words.items():
        query = query.replace(f"<<.{word}>>", text)

    def replicas() -> int:
        used = [float(each["value"][1]) for each in prometheus.value(query)]
        wanted = math.ceil(sum(used) / float(metric["pods"]["target"]["averageValue"]))
        return min(max(wanted, scaler["spec"]["minReplicas"]), scaler["spec"]["maxReplicas"])

    wait_until(lambda: replicas() > 1, lambda: f"{prometheus.value(query)}")
    assert prometheus.value(rule["seriesQuery"]), "the adapter finds the pods"
    lab.delete_workloads()


def test_an_alert_follows_a_gpu_that_fails(lab: Lab, prometheus: Prometheus) -> None:
    assert "LaminaGpuUnhealthy" not in prometheus.active()
    assert lab.lamina("lab", "fault", "xid", "79", "--gpu", "1", "--name", lab.name).returncode == 0
    wait_until(lambda: "LaminaGpuUnhealthy" in prometheus.active(), lambda: f"active are {prometheus.active()}")
