"""Follows a document block by block in a shell on a cluster, and compares what it prints with what is printed.

The shell has kubectl and lamina for the cluster. `oc` is kubectl under another name, `nvidia-smi` is the node's, and
`sudo` runs what follows it.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.scenarios.documents.blocks import blocks, exchanges, without_prompts
from tests.scenarios.documents.outputs import Comparison, compare, unused
from tests.scenarios.documents.steps import Adds, Applies, Edits, Prints, Reads, Runs, Saves, Session, Step
from tests.scenarios.labs import PATIENCE_S, Cluster
from tests.waiting import wait_until

_JQ = "import json, sys, jq\nfor each in jq.compile(sys.argv[-1]).input_value(json.load(sys.stdin)).all():\n"
_JQ += "    print(json.dumps(each, indent=2))\n"
_KEEP = "declare -p | grep -E '^declare -- [A-Za-z]' >variables"


class Reader:
    """Reads in a folder of its own. `words` stand for what the document leaves to its reader, such as `{node-name}`."""

    def __init__(self, cluster: Cluster, folder: Path, words: dict[str, str]) -> None:
        self.cluster, self.folder, self.words = cluster, folder, words
        self.used: set[str] = set()
        """The differences of the page that showed."""
        self._last: Callable[[], str] = str
        programs = folder / "bin"
        programs.mkdir()
        for name, text in self._programs().items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)

    def _programs(self) -> dict[str, str]:
        def runs(words: Sequence[str]) -> str:
            return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'

        return {
            **{name: runs(self.cluster.program(name, self.folder)) for name in ("kubectl", "lamina", "nvidia-smi")},
            "oc": runs(self.cluster.program("kubectl", self.folder)),
            "sudo": '#!/bin/sh\nexec "$@"\n',
            "jq": f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(_JQ)} "$@"\n',
        }

    def follow(self, document: str, script: Sequence[Step | Adds]) -> None:
        """Execute the whole document. Fails at the first block that does not do what its step says."""
        left = blocks(document)
        for step in script:
            if isinstance(step, Adds):
                self._where = f"before block {step.command!r}"
                self._run(step.command, step)
                continue
            block = left.pop(0) if left else ""
            self._where = f"block {step.begins!r}"
            assert block.lstrip().startswith(step.begins), f"{self._where}: the document has {block[:80]!r} here"
            self._do(step, self._filled(block))
        assert left == [], "the document goes on"

    def _filled(self, block: str) -> str:
        for word, name in self.words.items():
            block = block.replace(word, name)
        return block

    def _do(self, step: Step, block: str) -> None:
        match step:
            case Reads():
                self._use(step.because)
            case Saves():
                (self.folder / step.file).write_text(step.first + self.cluster.runnable(block) + "\n")
            case Applies():
                self.cluster.apply(step.first + block)
            case Edits():
                self._edit(step, block)
            case Runs():
                self._run(step.instead or without_prompts(block), step)
            case Session():
                self._converse(step, block)
            case Prints():
                self._compare(step, block)

    def _edit(self, step: Edits, block: str) -> None:
        path = self.folder / step.file
        line = re.search(rf"{re.escape(step.key)}: *\d+", block)
        assert line, f"{self._where}: no amount of {step.key}"
        changed, count = re.subn(rf"{re.escape(step.key)}: *\d+", line[0], path.read_text())
        assert count == 1, f"{self._where}: {step.key} stands {count} times in {step.file}"
        path.write_text(changed)

    def _run(self, text: str, step: Runs | Adds) -> None:
        self._use(step.because)
        command = self.cluster.runnable(self._filled(text))
        if step.shows:
            self._last = lambda: self._shell(command)[1]
            self._until(lambda: re.search(step.shows, self._last()) is not None, step.shows)
            return
        code, printed = self._shell(command)
        self._last = lambda: printed
        if isinstance(step, Runs) and step.fails:
            assert re.search(step.fails, printed), f"{self._where}: prints {printed}"
        else:
            assert code == 0, f"{self._where}: exit code {code}: {printed}"

    def _converse(self, step: Session, block: str) -> None:
        compared = []
        for command, printed in exchanges(block):
            if command:
                run = step.instead.get(command, command)
                self._last = lambda run=run: self._shell(run)[1]
            if printed.strip():
                compared.append(self._same(step, printed))
        self._note(step, compared)

    def _compare(self, step: Prints, expected: str) -> None:
        if step.of:
            self._last = lambda: self._shell(self._filled(step.of))[1]
        self._note(step, [self._same(step, expected)])

    def _same(self, step: Prints, expected: str) -> Comparison:
        """Wait until the last commands print this, but for the differences of the step."""

        def unexplained() -> list[str]:
            nonlocal compared
            compared = compare(expected, self._last())
            return compared.unexplained(step)

        compared = Comparison([], [])
        self._until(lambda: not unexplained(), lambda: "\n".join(unexplained()))
        return compared

    def _note(self, step: Prints, compared: Sequence[Comparison]) -> None:
        assert unused(step, compared) == [], f"{self._where}: no line differs so"
        self._use(step.because, *step.differs.values(), *step.more.values())

    def _use(self, *reasons: str) -> None:
        self.used.update(reason for reason in reasons if reason)

    def _until(self, condition: Callable[[], bool], wanted: object) -> None:
        def printed() -> str:
            missing = wanted() if callable(wanted) else wanted
            return f"{self._where}: {missing}\n--- it prints\n{self._last()}"

        wait_until(condition, printed)

    def _shell(self, command: str) -> tuple[int, str]:
        """Run it with the variables of the commands before. What has no end is ended."""
        text = f"[ ! -e variables ] || . ./variables\n{command}\ncode=$?\n{_KEEP}\nexit $code"
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder, text=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
            env=os.environ | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.returncode, done.stdout
