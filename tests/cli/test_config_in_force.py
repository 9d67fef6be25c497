"""`lamina config check`, `show` and `diff`: a file, the configuration in force, and how they differ."""

from pathlib import Path

import pytest

from lamina.configuration import DEFAULT, load
from lamina.configuration.config_map import in_force, text_hash
from lamina.ports.kube import CONFIG_MAPS, Object, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.worlds.objects import RECORDED, config_map

FIVE, SEVEN, BROKEN = ("hami: {deviceSplitCount: 5}", "hami: {deviceSplitCount: 7}", "hami: {splitCount: 5}")


async def commands(monkeypatch: pytest.MonkeyPatch, *maps: Object) -> Commands:
    kube = FakeKube()
    for each in maps:
        await kube.create(CONFIG_MAPS, each)
    return Commands(monkeypatch, kube)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lamina.yaml"
    path.write_text(SEVEN)
    return path


async def test_a_valid_file_is_named_with_its_hash(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    ended = await (await commands(monkeypatch)).run("config", "check", str(file))
    assert (ended.code, ended.output) == (0, f"{file} is valid, SHA-256 {text_hash(SEVEN)}.\n")


async def test_a_file_that_would_be_refused_ends_with_2(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.write_text(BROKEN)
    for command in ("check", "diff"):
        ended = await (await commands(monkeypatch)).run("config", command, str(file))
        assert ended.code == 2 and ended.error.startswith(f"{file}: unknown key splitCount in hami")


async def test_show_says_since_when_and_which_text(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await (await commands(monkeypatch, config_map(FIVE, FIVE))).run("config", "show")
    first, second, *rest = ended.output.splitlines()
    assert first == f"# ConfigMap lamina-system/lamina, SHA-256 {text_hash(FIVE)}"
    assert second == f"# In force since {RECORDED}."
    assert load("\n".join(rest), "shown") == load(FIVE, "written")


async def test_show_says_why_another_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await (await commands(monkeypatch, config_map(BROKEN, FIVE))).run("config", "show")
    _, second, third, *rest = ended.output.splitlines()
    assert second == f"# In force since {RECORDED}."
    assert third.startswith(
        "# The text in the ConfigMap is refused: ConfigMap lamina-system/lamina: unknown key splitC"
    )
    assert load("\n".join(rest), "shown") == load(FIVE, "written")


@pytest.mark.parametrize("recorded", [None, SEVEN])
async def test_a_text_that_the_controller_has_not_recorded(
    recorded: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = await (await commands(monkeypatch, config_map(FIVE, recorded))).run("config", "show")
    assert ended.output.splitlines()[1] == "# The controller has not recorded since when it is used."


async def test_without_a_config_map_the_default_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await (await commands(monkeypatch)).run("config", "show")
    assert ended.code == 0 and load(ended.output, "shown") == DEFAULT


async def test_diff_ends_with_1_where_files_differ_in_meaning(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    run = (await commands(monkeypatch, config_map(FIVE, FIVE))).run
    ended = await run("config", "diff", str(file))
    changed = [line for line in ended.output.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert ended.code == 1 and [line[0] for line in changed] == ["-", "+"]
    assert "5" in changed[0] and "7" in changed[1]
    file.write_text(f"# a comment\n{FIVE}")
    ended = await run("config", "diff", str(file))
    assert (ended.code, ended.output) == (0, f"{file} means the same as the configuration in force.\n")


async def test_diff_warns_where_another_text_is_refused(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    ended = await (await commands(monkeypatch, config_map(BROKEN, SEVEN))).run("config", "diff", str(file))
    assert ended.code == 0 and "Warning: the previous configuration is in force: " in ended.output


async def test_a_cluster_that_does_not_answer_ends_with_3(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    kube = FakeKube()
    kube.failing["get"] = lambda resource, name: Unreachable("the Kubernetes server does not answer")
    for command in (["show"], ["diff", str(file)]):
        ended = await Commands(monkeypatch, kube).run("config", *command)
        assert (ended.code, ended.error) == (3, "the Kubernetes server does not answer")


def test_what_was_recorded_by_hand_and_cannot_be_read_is_not_in_force() -> None:
    found = in_force(config_map(BROKEN, "nonsense: 1"))
    assert (found.text, found.config, found.since) == ("", DEFAULT, "") and "splitCount" in found.refusal
