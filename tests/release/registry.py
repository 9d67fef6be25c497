"""A registry that asks for a password, from Debian's package, and programs that know it by its certificate."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.cluster.components import cache
from tests.cluster.components.binaries import fetch
from tests.cluster.components.certificates import Authority
from tests.cluster.components.debian import STABLE, unpack
from tests.waiting import wait_until

PACKAGES = ("docker-registry", "skopeo", "libgpgme11", "libassuan0")
"""The server, and what copies images between registries with what it links to."""
USER, PASSWORD = "publisher", "password"
_KNOWN = f"{USER}:$2b$04$wfXM6wYxqC.iGA.WOib0newomOG86rNjYUN/EBQoYSumClRCHel8a\n"
"""The user with a hash of the password."""
_LISTENS = re.compile(r"listening on 127\.0\.0\.1:(\d+)")


class Registry:
    """Where it is, and the environment of programs that ask it."""

    def __init__(self, port: int, variables: Mapping[str, str]) -> None:
        self.host = f"localhost:{port}"
        self._variables = dict(variables)

    def run(self, *command: str, folder: Path, **more: str) -> "subprocess.CompletedProcess[str]":
        """What a program answers that trusts the registry and keeps its login next to it."""
        environment = os.environ | self._variables | more
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )


@contextmanager
def started(folder: Path, programs: Path) -> Iterator[Registry]:
    """One with nothing in it; the folder `programs` comes first on the PATH of those who ask it.

    Raises Unavailable where Debian's packages cannot be had.
    """
    system = cache.kept("registry-debian-12", _unpack)
    pair = Authority(folder / "certificates", "").signed("registry", "registry", hosts=("localhost", "127.0.0.1"))
    (folder / "users").write_text(_KNOWN)
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "storage")}},
        "http": {"addr": "127.0.0.1:0", "tls": {"certificate": str(pair.certificate), "key": str(pair.key)}},
        "auth": {"htpasswd": {"realm": "registry", "path": str(folder / "users")}},
    }
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    log = folder / "log"
    with log.open("w") as file:
        command = [system / "usr/bin/docker-registry", "serve", folder / "settings.yaml"]
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        found = wait_until(lambda: _LISTENS.search(log.read_text()), log.read_text)
        yield Registry(int(found[1]), _variables(folder, programs, system))
    finally:
        process.terminate()
        process.wait(60)


def _variables(folder: Path, programs: Path, system: Path) -> dict[str, str]:
    """Each program keeps its login below `folder`, and not where that of the person who runs the tests is."""
    return {
        "PATH": f"{programs}:{os.environ['PATH']}:{system / 'usr/bin'}",
        "LD_LIBRARY_PATH": str(system / "usr/lib/x86_64-linux-gnu"),
        "SSL_CERT_FILE": str(folder / "certificates/ca.crt"),
        "REGISTRY_AUTH_FILE": str(folder / "login.json"),
        "HELM_REGISTRY_CONFIG": str(folder / "helm/login.json"),
        "HELM_CONFIG_HOME": str(folder / "helm"),
        "HELM_CACHE_HOME": str(folder / "helm"),
    }


def _unpack(work: Path, result: Path) -> None:
    unpack(fetch([f"{name}/{STABLE}" for name in PACKAGES], work), result)
