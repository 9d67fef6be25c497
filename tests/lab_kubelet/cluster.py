"""A cluster of one real API server and one real kubelet process, driven from tests that are plain functions."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from lamina.ports.kube import EVENTS, NODES, PODS, NotFound, Resource
from lamina.ports.kube.client import KubeClient, connect
from lamina_lab.api import server
from lamina_lab.api.http.kubelets import LogOptions, UnixKubelets
from tests.waiting import wait_until

T = TypeVar("T")
Object = dict[str, Any]
NODE = "node-0"


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class OneKubelet:
    """`root` holds everything; the kubelet can be started, killed and started again."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="lam"))
        for name in ("bin", "cdi"):
            (self.root / name).mkdir()
        self.loop = Loop()
        self.kubelets = UnixKubelets(lambda node: self.root / "api" if node == NODE else None)
        self.server = self.loop.run(server.serve(self.kubelets))
        self.kubeconfig = self.root / "kubeconfig"
        self.server.write_kubeconfig(self.kubeconfig)
        self.kube: KubeClient = self.loop.run(connect(self.kubeconfig))
        self.process: subprocess.Popen[bytes] | None = None
        self.made: list[str] = []
        self.mark = secrets.token_hex(3)  # so that no process of another run on this machine has a pod's name

    def start_kubelet(self, *options: str) -> None:
        words = [
            *(sys.executable, "-m", "lamina_lab.kubelet", "--node", NODE, "--lab-id", str(self.root)),
            *("--kubeconfig", str(self.kubeconfig), "--kubelet-dir", str(self.root / "k")),
            *("--cdi-dir", str(self.root / "cdi"), "--programs", str(self.root / "bin")),
            *("--root-dir", str(self.root / "r"), "--socket", str(self.root / "api")),
            *("--cpus", "8", "--memory-mib", "4096", *options),
        ]
        with (self.root / "kubelet.log").open("ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        wait_until(lambda: (self.root / "api").exists() and self.node_is("True"), "the node is ready")

    def node_is(self, ready: str) -> bool:
        try:
            return condition(self.run(self.kube.get(NODES, NODE)), "Ready") == ready
        except (NotFound, KeyError):
            return False

    def end_kubelet(self, number: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(15)
        (self.root / "api").unlink(missing_ok=True)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end_kubelet()
        for part in (self.kube, self.kubelets, self.server):
            self.run(part.close())
        self.loop.close()
        shutil.rmtree(self.root)

    # Asking and telling the API server.

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    def create(self, *containers: Object, **spec: Any) -> str:
        """Make a pod on the node; returns its name."""
        name = f"pod-{self.mark}-{len(self.made) + 1}"
        self.made.append(name)
        annotations = spec.pop("annotations", {})
        body = {
            "metadata": {"name": name, "namespace": "default", "annotations": annotations, "labels": {"app": "x"}},
            "spec": {"nodeName": NODE, "containers": list(containers), **spec},
        }
        self.run(self.kube.create(PODS, body, namespace="default"))
        return name

    def get(self, resource: Resource, name: str) -> Object:
        return self.run(self.kube.get(resource, name, namespace="default" if resource.namespaced else ""))

    def pod(self, name: str) -> Object:
        return self.get(PODS, name)

    def delete(self, name: str, grace_s: int | None = None) -> None:
        self.run(self.kube.delete(PODS, name, namespace="default", grace_s=grace_s))

    def until(self, name: str, holds: Callable[[Object], Any], what: str) -> Object:
        """The pod once `holds` of it is true."""

        def ask() -> Object | None:
            pod = self.pod(name)
            return pod if holds(pod) else None

        return wait_until(ask, lambda: f"{what}; {self.pod(name)['status']}")

    def gone(self, name: str) -> bool:
        try:
            self.pod(name)
            return False
        except NotFound:
            return True

    def until_gone(self, name: str) -> None:
        wait_until(lambda: self.gone(name), f"{name} is gone")

    def events(self, name: str) -> list[Object]:
        listing = self.run(self.kube.list(EVENTS, namespace="default"))
        return [event for event in listing.items if event["involvedObject"]["name"] == name]

    def log(self, name: str, container: str = "main", **options: Any) -> str:
        async def read() -> bytes:
            chunks = await self.kubelets.logs(NODE, "default", name, container, LogOptions(**options))
            return b"".join([chunk async for chunk in chunks])

        return self.run(read()).decode()


def condition(obj: Object, kind: str) -> str:
    return next(str(entry["status"]) for entry in obj["status"]["conditions"] if entry["type"] == kind)


def container(script: str, name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "example", "command": ["sh", "-c", script], **more}


def state(pod: Object, index: int = 0, group: str = "containerStatuses") -> Object:
    found: Object = pod["status"].get(group, [{}])[index].get("state", {})
    return found


def waiting(pod: Object) -> str:
    """The reason for which the first container waits."""
    return str(state(pod).get("waiting", {}).get("reason"))


def restarts(pod: Object) -> int:
    return int(pod["status"].get("containerStatuses", [{}])[0].get("restartCount", 0))


def is_running(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and condition(pod, "Ready") == "True"


def phase(pod: Object) -> str:
    return str(pod.get("status", {}).get("phase"))


def marked(text: str) -> list[int]:
    """Processes whose environment holds `text`, this one left out."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if text.encode() in Path(entry.path, "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
