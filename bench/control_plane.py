"""Kubernetes' own etcd, kube-apiserver and kube-scheduler as processes of this machine, for benchmarks.

KUBE_BIN_DIR names the folder with kube-apiserver and kube-scheduler; etcd is taken from there, or from PATH.
"""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bench.parts import Need
from lamina.admission.certificates import create
from lamina.errors import BadInput
from lamina.install.versions import Version, parse_version
from lamina.ports.kube.client import KubeClient, connect

_HOST = "127.0.0.1"
_START_S = 120.0
_PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler")
_WITHOUT = "ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds"
"""Admission plug-ins that need controllers or kubelets."""


class NoPrograms(Exception):
    """The programs are not there; the message is for people."""


def programs() -> dict[str, Path]:
    """The paths of Kubernetes' programs. Raises NoPrograms."""
    folder = os.environ.get("KUBE_BIN_DIR")
    if not folder:
        raise NoPrograms("set KUBE_BIN_DIR to a folder with kube-apiserver, kube-scheduler and etcd")
    found = {name: shutil.which(name, path=folder) or shutil.which(name) for name in _PROGRAMS}
    if missing := [name for name, path in found.items() if path is None]:
        raise NoPrograms(f"KUBE_BIN_DIR is {folder}, which has no {', '.join(missing)}")
    return {name: Path(path) for name, path in found.items() if path is not None}


def _missing() -> str:
    try:
        programs()
    except NoPrograms as reason:
        return str(reason)
    return ""


KUBERNETES = Need("Kubernetes", _missing)
"""For parts of benchmarks that start a control plane."""


@dataclass
class ControlPlane:
    """An API server that answers, with an administrator's kubeconfig."""

    folder: Path
    binaries: dict[str, Path]
    version: Version
    kubeconfig: Path
    kube: KubeClient
    pids: dict[str, int]
    """The processes of etcd and kube-apiserver."""
    gates: Sequence[str] = ()

    def log(self, name: str) -> str:
        """The end of what a program said."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-500:]

    @contextlib.contextmanager
    def program(self, path: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Another program next to them, until the block ends; its output is in `log`."""
        with _process(self.folder, path, *arguments) as process:
            yield process

    @asynccontextmanager
    async def scheduler(self, document: dict[str, Any]) -> AsyncIterator[subprocess.Popen[bytes]]:
        """kube-scheduler with this configuration, over the administrator's login."""
        port = free_port()
        document = document | {
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 2000, "burst": 4000},
            "leaderElection": {"leaderElect": False},
        }
        arguments = ["--authentication-skip-lookup=true", f"--secure-port={port}", f"--cert-dir={self.folder}"]
        arguments += _feature_gates(self.gates)
        if self.version < (1, 25):
            insecure = f"{_HOST}:{free_port()}"
            document |= {"healthzBindAddress": insecure, "metricsBindAddress": insecure}
        path = self.folder / "scheduler.yaml"
        path.write_text(yaml.safe_dump(document))
        with _process(self.folder, self.binaries["kube-scheduler"], f"--config={path}", *arguments) as process:
            yield process


@asynccontextmanager
async def control_plane(
    folder: Path, *, gates: Sequence[str] = (), apis: Sequence[str] = ()
) -> AsyncIterator[ControlPlane]:
    """etcd and kube-apiserver, until the block ends, with these feature gates on and these API versions served.

    Raises NoPrograms.
    """
    binaries = programs()
    client, peer, port = free_port(), free_port(), free_port()
    etcd = [
        *(f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync", f"--listen-client-urls=http://{_HOST}:{client}"),
        *(f"--advertise-client-urls=http://{_HOST}:{client}", f"--listen-peer-urls=http://{_HOST}:{peer}"),
    ]
    kubeconfig, arguments = _login(folder, port)
    arguments += [*_feature_gates(gates), *(f"--runtime-config={api}=true" for api in apis)]
    arguments += [f"--etcd-servers=http://{_HOST}:{client}", f"--secure-port={port}", f"--bind-address={_HOST}"]
    with (
        _process(folder, binaries["etcd"], *etcd) as store,
        _process(folder, binaries["kube-apiserver"], *arguments) as apiserver,
    ):
        kube = await _connected(kubeconfig, lambda: apiserver.poll() is not None)
        try:
            version, pids = _version(binaries["kube-scheduler"]), {"etcd": store.pid, "kube-apiserver": apiserver.pid}
            yield ControlPlane(folder, binaries, version, kubeconfig, kube, pids, gates)
        finally:
            await kube.close()


def _feature_gates(gates: Sequence[str]) -> list[str]:
    return [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as listener:
        listener.bind((_HOST, 0))
        return int(listener.getsockname()[1])


def _login(folder: Path, port: int) -> tuple[Path, list[str]]:
    """The administrator's kubeconfig, and the server's arguments for it."""
    serving = create([_HOST], datetime.now(UTC) - timedelta(minutes=1))
    token = secrets.token_hex(16)
    files = {"ca.crt": serving.authorities, "tls.crt": serving.certificate, "tls.key": serving.key}
    files |= {"tokens.csv": f"{token},admin,admin,system:masters\n".encode(), "accounts.key": _account_key()}
    for name, content in files.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(content)
    cluster = {"server": f"https://{_HOST}:{port}", "certificate-authority": str(folder / "ca.crt")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "admin"}}],
        "current-context": "bench",
    }
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    return kubeconfig, [
        *(f"--tls-cert-file={folder / 'tls.crt'}", f"--tls-private-key-file={folder / 'tls.key'}"),
        *(f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC"),
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        *("--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16"),
        *(f"--disable-admission-plugins={_WITHOUT}", "--max-requests-inflight=0", f"--cert-dir={folder}"),
        "--enable-priority-and-fairness=false",
        "--max-mutating-requests-inflight=0",
    ]


def _account_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


async def _connected(kubeconfig: Path, ended: Callable[[], bool]) -> KubeClient:
    end = asyncio.get_running_loop().time() + _START_S
    while True:
        try:
            return await connect(kubeconfig)
        except BadInput:
            if ended() or asyncio.get_running_loop().time() > end:
                raise
        await asyncio.sleep(0.2)


def _version(scheduler: Path) -> Version:
    output = subprocess.run([scheduler, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"v\d+\.\d+\S*", output)
    return parse_version(found[0] if found else output)


@contextlib.contextmanager
def _process(folder: Path, program: Path, *arguments: str) -> Any:
    """The program, with what it says in a file, until the block ends."""
    with (folder / f"{program.name}.log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd=folder)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
