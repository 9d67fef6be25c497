"""`lamina cordon` and `uncordon` name the whole command to those who leave out the word `gpu`."""

import pytest

from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands


@pytest.mark.parametrize("command", ["cordon", "uncordon"])
@pytest.mark.parametrize(("given", "written"), [("node-0 1", "node-0 1"), ("node-0", "node-0 GPU")])
async def test_without_the_word_gpu_the_command_to_write_is_named(
    monkeypatch: pytest.MonkeyPatch, command: str, given: str, written: str
) -> None:
    kube = FakeKube()
    ended = await Commands(monkeypatch, kube).run(command, *given.split())
    assert (ended.code, ended.error) == (
        2,
        f"lamina {command} is about one GPU of a node; write `lamina {command} gpu {written}`",
    )
    assert kube.calls == []
