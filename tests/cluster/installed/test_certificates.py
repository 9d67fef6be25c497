"""The certificate of admission is replaced while pods come, and none of them notices."""

import json
import threading

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.installed.queries import NAMESPACE, NONSENSE, SHARE
from tests.cluster.queries import pod
from tests.waiting import wait_until

SECRET = "lamina-admission"
WEBHOOK = "lamina.dev"


class Asking(threading.Thread):
    """Until it is stopped, makes pods that admission must take and others that it must refuse. None is kept."""

    def __init__(self, cluster: RealCluster) -> None:
        super().__init__(daemon=True)
        self.rounds, self.trouble = 0, list[str]()
        self._cluster, self._stopped = cluster, threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set():
            if (output := self._output(pod("asked", limits=SHARE))) != "":
                self.trouble.append(output)
            if "gpucores" not in (output := self._output(pod("nonsense", limits=NONSENSE))):
                self.trouble.append(output or "nonsense was admitted")
            self.rounds += 1

    def _output(self, manifest: str) -> str:
        try:
            self._cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=manifest)
        except Unavailable as refused:
            return str(refused)
        return ""

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def served(cluster: RealCluster) -> str:
    """The certificate that the Service shows who connects."""
    address = cluster.kubectl("get", "service", SECRET, "-n", NAMESPACE, "-o", "jsonpath={.spec.clusterIP}")
    return cluster.control.sandbox.run(
        "python3", "-c", f"import ssl; print(ssl.get_server_certificate(('{address}', 443), timeout=5))"
    ).strip()


def trusted(cluster: RealCluster) -> set[str]:
    found = json.loads(cluster.kubectl("get", "mutatingwebhookconfiguration", WEBHOOK, "-o", "json"))
    return {each["clientConfig"]["caBundle"] for each in found["webhooks"]}


def configure(cluster: RealCluster, text: str) -> None:
    patch = json.dumps({"data": {"lamina.yaml": text}})
    cluster.kubectl("patch", "configmap", "lamina", "-n", NAMESPACE, "--type=merge", "-p", patch)


def test_a_certificate_that_is_gone_is_replaced_without_a_gap(cluster: RealCluster, lamina: Installation) -> None:
    """The controller looks by itself every five minutes, and at once when its configuration changes."""
    before, authorities = served(cluster), trusted(cluster)
    asking = Asking(cluster)
    asking.start()
    try:
        cluster.kubectl("delete", "secret", SECRET, "-n", NAMESPACE)
        configure(cluster, "sharing: {lowPriorityPercent: 1}")
        wait_until(lambda: served(cluster) != before, lambda: "the old certificate is still served")
        rounds = asking.rounds
        wait_until(lambda: asking.rounds > rounds + 3, lambda: "no one asks any more")
    finally:
        asking.stop()
        configure(cluster, "{}")
    assert asking.trouble == []
    assert len(trusted(cluster)) == 1
    assert trusted(cluster) != authorities
