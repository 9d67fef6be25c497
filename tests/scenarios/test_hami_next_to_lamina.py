"""docs/how-to/migrate-from-hami-gradually.md, followed next to a stand-in for HAMi.

It has what of HAMi other pods and Lamina meet: a webhook that assigns its scheduler, a scheduler that binds to nodes
with `gpu=on`, and a device plugin for `nvidia.com/gpu`.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lamina.ports.kube import Object
from tests.docs.guide_steps import DOCS
from tests.lab_api.hooks import Hook, allowed
from tests.lab_kubelet.fake_plugin import FakePlugin, device
from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.guides import GuideReader, Says
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

PAGE = DOCS / "how-to/migrate-from-hami-gradually.md"
SCHEDULER, THEIRS, TEAM = "hami-scheduler", "node-1", "team"
OFFERED = ("get", "node", THEIRS, "-o", "jsonpath={.status.allocatable.nvidia\\.com/gpu}")
DEVICES, EVERY_S = 10, 0.5


def assigned(request: Object) -> Object:
    """HAMi's answer: pods with its resources that name no other scheduler get its own."""
    pod = request["object"]
    asks = any("nvidia.com/gpu" in str(each.get("resources")) for each in pod["spec"]["containers"])
    if not asks or pod["spec"].get("schedulerName") not in (None, "default-scheduler", SCHEDULER):
        return allowed()
    return allowed({"op": "add", "path": "/spec/schedulerName", "value": SCHEDULER})


class Hami:
    """HAMi as far as others notice it, in a thread of its own."""

    def __init__(self, lab: Lab) -> None:
        self._lab, self._loop = lab, asyncio.new_event_loop()
        self._hook = Hook(assigned)
        kubelet = lab.machine.parents[1] / THEIRS.removeprefix("node-") / "k"
        self._plugin = FakePlugin(kubelet / "device-plugins", [device(f"hami-{i}") for i in range(DEVICES)])
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._ended = threading.Event()
        self._binder = threading.Thread(target=self._bind_all, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._do(self._hook.start())
        self._do(self._plugin.begin())
        selector = {"matchExpressions": [{"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}]}
        webhook = self._hook.config(name="vgpu.hami.io", namespaceSelector=selector, failurePolicy="Ignore")
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
        self._lab.apply(json.dumps({**kind, "metadata": {"name": "hami-webhook"}, "webhooks": [webhook]}))
        self._binder.start()

    def offers(self) -> bool:
        """Whether kubelet has its devices."""
        return self._lab.kubectl(*OFFERED) == str(DEVICES)

    def stop(self) -> None:
        self._ended.set()
        self._binder.join()
        self._do(self._plugin.stop())
        self._do(self._hook.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _do(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)  # type: ignore[arg-type]

    def _bind_all(self) -> None:
        while not self._ended.wait(EVERY_S):
            for pod in self._lab.read("/api/v1/pods")["items"]:
                if pod["spec"].get("schedulerName") == SCHEDULER and not pod["spec"].get("nodeName"):
                    self._bind(pod["metadata"]["namespace"], pod["metadata"]["name"])

    def _bind(self, namespace: str, name: str) -> None:
        # The agent of an excluded node leaves a cluster's node; a lab's stays, and kubelet follows who registered last.
        self._do(self._plugin.register())
        wait_until(self.offers, self._lab.described)
        target = {"apiVersion": "v1", "kind": "Node", "name": THEIRS}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        self._lab.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding), check=False)


@pytest.fixture
def served_by_hami(start_lab: StartLab) -> Iterator[Lab]:
    """Two nodes that HAMi serves, one of them with a Deployment of its own."""
    config = (EXAMPLES / "configuration/v1alpha1/next-to-hami.yaml").read_text()
    lab = start_lab("two-systems", "--nodes", "2", config=config)
    lab.kubectl("label", "node", "--all", "lamina.dev/agent=false", "gpu=on", "--overwrite")
    wait_until(lambda: lab.kubectl(*OFFERED) in ("", "0"), lab.described)
    hami = Hami(lab)
    hami.start()
    wait_until(hami.offers, lab.described)
    lab.kubectl("create", "namespace", TEAM)
    lab.kubectl("label", "namespace", TEAM, "lamina.dev/webhook=ignore")
    lab.kubectl("apply", "-n", TEAM, "-f", "-", stdin=deployment())
    lab.kubectl("rollout", "status", "-n", TEAM, "deployment/server", "--timeout=100s")
    yield lab
    hami.stop()


def deployment() -> str:
    main = {"name": "main", "image": "any", "command": ["sleep", "infinity"]}
    resources = {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [main | {"resources": resources}]}
    labels = {"app": "server"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"selector": {"matchLabels": labels}, "template": template}
    return yaml.safe_dump(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "server"}, "spec": selector}
    )


def test_both_serve_and_a_namespace_moves_there_and_back(served_by_hami: Lab, tmp_path: Path) -> None:
    reader = GuideReader(tmp_path, served_by_hami.environment, {"NODE": "node-0", "NAMESPACE": TEAM})
    theirs, ours = rf"^BY +ON\n{SCHEDULER} +{THEIRS}\n$", r"^BY +ON\nlamina-scheduler +node-0\n$"
    reader.follow(
        PAGE,
        [
            Says("kubectl get pods", rf"server-\S+ +{SCHEDULER} +{THEIRS}"),
            Says("lamina gpus", r"node-0 +0"),
            Says("kubectl get pods", ours),
            Says("lamina pods", r"Running +node-0 +\d +3000 MiB"),
            Says("kubectl get pods", theirs),
            Says("lamina doctor", r"\d+ checks: 0 failed"),
        ],
    )
    assert served_by_hami.read(f"/apis/lamina.dev/v1alpha1/namespaces/{TEAM}/grants")["items"] == []
