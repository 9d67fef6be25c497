"""What the recipes for Slurm and JupyterHub contain does what they say, as far as it can without these."""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.configuration import DEFAULT
from lamina.configuration.yaml_documents import load_mapping
from lamina.dialects import parse
from tests.docs.guide_steps import DOCS
from tests.worlds.runs import private_folder, running

STEP = {"SLURM_SHARDS_ON_NODE": "8", "SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_NODEID": "0"}
"""What Slurm sets for the task of a step with one task on one node."""


def block(page: str, language: str) -> str:
    (found,) = re.findall(
        rf"^```{language}\n(.*?)^```$", (DOCS / "how-to" / page).read_text(), re.DOTALL | re.MULTILINE
    )
    return str(found)


def prolog(**variables: str) -> dict[str, str]:
    """What the task prolog of the page has Slurm change in the environment of a task; "" is unset."""
    done = subprocess.run(
        ["/bin/sh", "-ec", block("slurm.md", "sh")],
        env={"PATH": "/nowhere", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    changed = {}
    for line in done.stdout.splitlines():
        what, _, text = line.partition(" ")
        assert what in ("export", "unset"), line
        name, _, value = text.partition("=")
        changed[name] = value
    return changed


@pytest.mark.parametrize(
    ("tasks", "node", "limit"),
    [
        ("1", "0", "8192Mi"), ("4", "0", "2048Mi"), ("3", "0", "2730Mi"), ("2(x3)", "2", "4096Mi"),
        ("2(x3),1", "2", "4096Mi"), ("2(x3),1", "3", "8192Mi"), ("1,16(x2),4", "2", "512Mi"), ("10,4", "1", "2048Mi"),
    ],
)  # fmt: skip
def test_the_task_prolog_gives_each_task_its_part_of_the_shards(tasks: str, node: str, limit: str) -> None:
    changed = prolog(**STEP | {"SLURM_STEP_TASKS_PER_NODE": tasks, "SLURM_NODEID": node})
    assert changed["LAMINA_RUN_MEMORY"] == limit
    assert changed["PATH"] == "/opt/lamina/bin:/nowhere", "the user's own is kept"


def test_without_shards_there_is_no_limit_that_another_job_left() -> None:
    assert prolog(LAMINA_RUN_MEMORY="8192Mi") == {"LAMINA_RUN_MEMORY": ""}
    refused = CliRunner().invoke(app, ["run", "--", "true"])
    assert refused.exit_code == 2 and "--memory" in refused.stderr


def test_a_task_is_held_to_what_the_prolog_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("LAMINA_RUN_MEMORY", prolog(**STEP)["LAMINA_RUN_MEMORY"])
    assert limits_of("--simulate", "T4") == [(8192, 0)]


def limits_of(*options: str) -> list[tuple[int, int]]:
    with running(*options):
        rows: list[dict[str, Any]] = json.loads(CliRunner().invoke(app, ["ps", "-o", "json"]).stdout)
    return [(row["memoryMib"], row["computePercent"] or 0) for row in rows]


def hub() -> Any:
    """The configuration of the page, as JupyterHub loads it: with `c`, whose parts take what they are given."""
    config = SimpleNamespace(Spawner=SimpleNamespace())
    exec(compile(block("jupyterhub.md", "python"), "jupyterhub_config.py", "exec"), {"c": config})
    return config.Spawner


@pytest.mark.parametrize(("form", "limit"), [({}, (4096, 20)), ({"share": ["large"]}, (16384, 50))])
def test_a_notebook_is_started_with_the_share_of_the_form(
    form: dict[str, list[str]], limit: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_folder(tmp_path, monkeypatch)
    configured = hub()
    spawner = SimpleNamespace(user_options=configured.options_from_form(form))
    configured.pre_spawn_hook(spawner)
    assert spawner.cmd[:2] == ["lamina", "run"] and spawner.cmd[-2:] == ["--", "jupyterhub-singleuser"]
    assert limits_of(*spawner.cmd[2:-2], "--simulate", "A100-SXM4-40GB") == [limit]


def test_a_share_that_the_form_does_not_have_is_refused() -> None:
    configured = hub()
    with pytest.raises(ValueError, match="there is no share 'all'"):
        configured.options_from_form({"share": ["all"]})
    assert configured.options_form.count("<option") == 2


def test_a_profile_is_what_its_name_says() -> None:
    profiles = load_mapping(block("jupyterhub.md", "yaml"), "jupyterhub.md")["singleuser"]["profileList"]
    found = {}
    for profile in profiles:
        limits = profile["kubespawner_override"]["extra_resource_limits"]
        pod = {"metadata": {}, "spec": {"containers": [{"name": "notebook", "resources": {"limits": limits}}]}}
        request = parse(pod, DEFAULT)
        assert request is not None
        (container,) = request.containers
        found[profile["display_name"]] = (container.memory_mib, container.cores, container.exclusive)
    assert found == {
        "Small GPU share, 4 GiB": (4096, 20, False),
        "Large GPU share, 16 GiB": (16384, 50, False),
        "Whole GPU": (None, 100, True),
    }
    assert [profile.get("default", False) for profile in profiles] == [True, False, False]
