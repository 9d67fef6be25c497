"""Executes the steps of a page, as a reader who types them one after the other."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.guide_steps import steps
from tests.kubectl import find_kubectl
from tests.scenarios.labs import PATIENCE_S
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
AS_HERE = {"make demo": "lamina demo", ". .venv/bin/activate": "true"}
"""Steps that install Lamina, which the tests have; what remains of them."""


@dataclass(frozen=True)
class Says:
    """What the next command with this beginning has to print, sooner or later. `words` stand for names in capitals.

    Commands without an expectation run once and have to succeed.
    """

    beginning: str
    pattern: str
    words: Mapping[str, str] = field(default_factory=dict)


class GuideReader:
    """Reads pages in a folder with the examples, with what `export KUBECONFIG=...` last set."""

    def __init__(self, folder: Path, environment: Mapping[str, str], words: Mapping[str, str]) -> None:
        self.folder, self.words = folder, dict(words)
        programs = (Path(sys.executable).parent, Path(find_kubectl()).parent)
        self.environment = {**os.environ, **environment}
        self.environment["PATH"] = ":".join([*map(str, programs), self.environment["PATH"]])
        self.printed = ""
        (folder / "examples").symlink_to(ROOT / "examples")

    def follow(self, page: Path, expected: Sequence[Says]) -> None:
        """Execute the page. Fails for a step that does not do what is expected, and for an expectation without step."""
        left = list(expected)
        for step in steps(page):
            if step.skipped:
                continue
            says = left.pop(0) if left and step.command.startswith(left[0].beginning) else None
            where = f"{page.name}:{step.line}: {step.command}"
            self._execute(self._filled(step.command, says.words if says else {}), says, where)
        assert left == [], f"{page.name} has no such steps in this order"

    def _filled(self, command: str, words: Mapping[str, str]) -> str:
        """The command with names for the words in capitals."""
        command = AS_HERE.get(command, command)
        for word, name in {**self.words, **words}.items():
            command = re.sub(rf"\b{word}\b", name, command)
        return command

    def _execute(self, command: str, says: Says | None, where: str) -> None:
        if says is None:
            done = self._run(command)
            assert done.returncode == 0, f"{where}: exit code {done.returncode}: {done.stdout}"
            return
        wait_until(
            lambda: re.search(says.pattern, self._run(command).stdout),
            lambda: f"{where}: it never prints {says.pattern!r}, but {self.printed[-2000:]}",
        )

    def _run(self, command: str) -> "subprocess.CompletedProcess[str]":
        if command.startswith("export KUBECONFIG="):
            command = "true"  # the reader has taken what the lab printed
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder, env=self.environment, text=True, check=False, timeout=3 * PATIENCE_S,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.printed = done.stdout
        if "export KUBECONFIG=" in done.stdout:
            self.environment["KUBECONFIG"] = re.findall(r"export KUBECONFIG=(\S+)", done.stdout)[-1]
        return done
