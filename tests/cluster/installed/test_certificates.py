"""The certificate of admission is made anew while pods come, and none of them notices."""

import json
import threading

from tests.cluster.asking import pod, until
from tests.cluster.installed.asking import NAMESPACE, NONSENSE, SHARE
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.installation import Installation
from tests.cluster.stage.stage import Stage

SECRET = "lamina-admission"
WEBHOOK = "lamina.dev"


class Asking(threading.Thread):
    """Makes pods that admission must take and others that it must refuse, none of which is kept, until told to stop."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(daemon=True)
        self.rounds, self.trouble = 0, list[str]()
        self._stage, self._stopped = stage, threading.Event()

    def run(self) -> None:
        while not self._stopped.is_set():
            if (said := self._said(pod("asked", limits=SHARE))) != "":
                self.trouble.append(said)
            if "gpucores" not in (said := self._said(pod("nonsense", limits=NONSENSE))):
                self.trouble.append(said or "nonsense was admitted")
            self.rounds += 1

    def _said(self, manifest: str) -> str:
        try:
            self._stage.kubectl("create", "--dry-run=server", "-f", "-", stdin=manifest)
        except Unavailable as refused:
            return str(refused)
        return ""

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def served(stage: Stage) -> str:
    """The certificate that the Service shows who connects."""
    address = stage.kubectl("get", "service", SECRET, "-n", NAMESPACE, "-o", "jsonpath={.spec.clusterIP}")
    return stage.control.room.run(
        "python3", "-c", f"import ssl; print(ssl.get_server_certificate(('{address}', 443), timeout=5))"
    ).strip()


def trusted(stage: Stage) -> set[str]:
    found = json.loads(stage.kubectl("get", "mutatingwebhookconfiguration", WEBHOOK, "-o", "json"))
    return {each["clientConfig"]["caBundle"] for each in found["webhooks"]}


def configure(stage: Stage, text: str) -> None:
    patch = json.dumps({"data": {"lamina.yaml": text}})
    stage.kubectl("patch", "configmap", "lamina", "-n", NAMESPACE, "--type=merge", "-p", patch)


def test_a_certificate_that_is_gone_is_replaced_without_a_gap(stage: Stage, lamina: Installation) -> None:
    """The control part looks by itself every five minutes, and at once when its configuration changes."""
    before, authorities = served(stage), trusted(stage)
    asking = Asking(stage)
    asking.start()
    try:
        stage.kubectl("delete", "secret", SECRET, "-n", NAMESPACE)
        configure(stage, "lowPriorityPercent: 1")
        until(lambda: served(stage) != before, lambda: "the old certificate is still served")
        rounds = asking.rounds
        until(lambda: asking.rounds > rounds + 3, lambda: "nobody asks any more")
    finally:
        asking.stop()
        configure(stage, "{}")
    assert asking.trouble == []
    assert len(trusted(stage)) == 1
    assert trusted(stage) != authorities
