"""Commands as a person starts them, against an API server in memory."""

import asyncio
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from lamina.cli import terminal
from lamina.cli.main import app
from lamina.errors import LaminaError
from lamina.ports.kube import Kube
from lamina.ports.kube.fake import FakeKube

IMAGE = ("--set", "image.repository=registry.example/lamina")
"""What `lamina install` requires."""


class VersionedKube(FakeKube):
    """An API server that tells its version."""

    async def version(self) -> dict[str, str]:
        return {"gitVersion": "v1.45.0"}


class Ended(NamedTuple):
    """How a command ended, with what it printed, or the sentence of the error that `lamina` would print."""

    code: int
    output: str
    error: str = ""

    @property
    def rows(self) -> list[list[str]]:
        """The words of each line."""
        return [line.split() for line in self.output.splitlines()]


class Commands:
    """Runs commands. `kube` is what they connect to, `namespace` that of the kubeconfig's context."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kube: Kube, namespace: str = "default") -> None:
        self.namespace = namespace

        async def connect(*_: object, **__: object) -> Kube:
            return kube

        monkeypatch.setattr("lamina.ports.kube.client.connect", connect)
        monkeypatch.setattr(
            "lamina.ports.kube.client.cluster_name",
            lambda path, context="": f"https://server (context {context or 'test'})",
        )
        monkeypatch.setattr("lamina.ports.kube.client.context_namespace", lambda path, context="": self.namespace)
        monkeypatch.setattr(terminal.console, "_width", 200)

    async def run(self, *arguments: str, answers: str = "") -> Ended:
        """Run one command. `answers` is what the person types."""
        result = await asyncio.to_thread(CliRunner().invoke, app, list(arguments), input=answers)
        if isinstance(result.exception, LaminaError):
            return Ended(result.exception.exit_code, result.output, str(result.exception))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ended(result.exit_code, result.output)
