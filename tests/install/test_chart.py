"""The chart and `lamina install` say the same, whatever the values and the cluster's version."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from lamina import __version__
from lamina.cli.install import _manifests, _write_chart
from lamina.cli.main import app
from lamina.install import values as install_values
from lamina.install.chart import chart, chart_version
from lamina.install.names import PART_OF
from lamina.operations.installed import InstalledCluster
from tests.helm import helm
from tests.install.drawn_values import MENU, VERSIONS, drawn_values


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chart") / "lamina"
    _write_chart(path)
    return path


IMAGE = "example.com/lamina"
MANAGED_BY = "app.kubernetes.io/managed-by"


def by_helm(folder: Path, *more: str, namespace: str = "lamina-system", image: bool = True) -> Any:
    image = ("--set", f"image.repository={IMAGE}") if image else ()
    return helm("template", "lamina", str(folder), "--namespace", namespace, "--include-crds", *image, *more)


def indexed(text: str) -> dict[tuple[str, ...], Any]:
    found = {}
    for document in yaml.safe_load_all(text):
        if document is not None:
            meta = document["metadata"]
            key = (document["apiVersion"], document["kind"], meta.get("namespace", ""), meta["name"])
            assert key not in found
            found[key] = document
    return found


SEEDS = range(24)
"""With these, each entry of the menu is drawn."""


@pytest.mark.parametrize("seed", SEEDS)
def test_both_say_the_same(seed: int, folder: Path, tmp_path: Path) -> None:
    drawn, version = drawn_values(seed)
    compare(drawn, version, folder, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_both_say_the_same_by_default(version: str, folder: Path, tmp_path: Path) -> None:
    compare({}, version, folder, tmp_path)


def compare(given: dict[str, Any], version: str, folder: Path, tmp_path: Path) -> None:
    """What Helm makes of the chart next to what `lamina install` does."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(given, allow_unicode=True))
    reported = by_helm(folder, "--skip-tests", "--values", str(file), "--kube-version", version)
    assert reported.returncode == 0, reported.stderr
    values = install_values.read([(str(file), file.read_text())], [f"image.repository={IMAGE}"])
    ours = indexed(_manifests(install_values.plain(values), InstalledCluster(version)))
    del ours["v1", "Namespace", "", "lamina-system"]  # which Helm makes by itself
    theirs = indexed(reported.stdout)
    for objects in (ours, theirs):
        configuration = objects["v1", "ConfigMap", "lamina-system", "lamina"]["data"]
        configuration["lamina.yaml"] = yaml.safe_load(configuration["lamina.yaml"])
    for (_, kind, *_), each in theirs.items():
        if kind != "CustomResourceDefinition":
            assert each["metadata"]["labels"].pop(MANAGED_BY) == "Helm"
    for (_, kind, *_), each in ours.items():
        assert kind == "CustomResourceDefinition" or each["metadata"]["labels"].pop(MANAGED_BY) == "lamina"
    assert theirs == ours


def test_the_seeds_draw_each_entry_of_the_menu() -> None:
    drawn = [drawn_values(seed) for seed in SEEDS]
    assert {version for _, version in drawn} == {*VERSIONS}
    for path, others in MENU.items():
        found = []
        for values, _ in drawn:
            value: Any = values
            for key in path.split("."):
                value = value.get(key, {}) if isinstance(value, dict) else {}
            found.append(value)
        assert [other for other in others if found.count(other) < 1] == [], path


@pytest.mark.parametrize(
    ("setting", "output"),
    [
        ("agent.mig=perhaps", "agent.mig must be true or false, got"),
        ("controller.replicas=0", "controller.replicas must be a whole number from 1 on, got 0"),
        ("agent.driverDir=lib", "agent.driverDir must be an absolute path"),
        ("agent.driverdir=/lib", "driverdir"),
        ("image.repository=example.com/lamina:1", "image.repository must be a name such as REGISTRY/lamina; image.tag"),
        ("image.repository=example.com/lamina@sha256:0a", "image.repository must be a name"),
        ("image.digest=sha256:0a", "image.digest must be sha256: and 64 digits"),
        ("agent.cdiDir=/var/run/cdi/", "agent.cdiDir must be an absolute path"),
        ("agent.stateDir=/x", "agent.stateDir must be an absolute path as for other folders, but of two"),
        ("agent.stateDir=/var/../x", "agent.stateDir must be"),
        ("scheduler.extenderUrl=lamina:80", "scheduler.extenderUrl"),
        ("agent.pools=[{name: A}]", "agent.pools[0].name must be a name of lower-case letters"),
        ("agent.pools=[{name: a, driverDir: lib}]", "agent.pools[0].driverDir must be an absolute path"),
        ("agent.pools=[{name: a}, {name: a}]", "agent.pools must have each name once, got a twice"),
        ("networkPolicy.enabled=null", "networkPolicy.enabled must not be null; set it, or omit it"),
        ("scheduler.image.repository=null", "scheduler.image.repository must not be null"),
        ("controller.replicas=null", "controller.replicas must not be null"),
        ("agent=null", "agent must not be null"),
        ("config=null", "config must not be null"),
    ],
)
def test_both_refuse_the_same(setting: str, output: str, folder: Path) -> None:
    with pytest.raises(install_values.BadInput, match=re.escape(output)):
        install_values.read([], [setting])
    path, _, value = setting.partition("=")
    given = f"--set-json={path}={json.dumps(yaml.safe_load(value))}" if value[0] == "[" else f"--set={setting}"
    reported = by_helm(folder, given)
    assert reported.returncode != 0
    assert setting.partition("=")[0].rpartition(".")[2] in reported.stderr


def test_both_refuse_the_network_of_nodes_on_openshift(folder: Path) -> None:
    settings = ["controller.hostNetwork=true", "openshift.enabled=true"]
    with pytest.raises(install_values.BadInput) as refused:
        install_values.read([], settings)
    reported = by_helm(folder, *(f"--set={setting}" for setting in settings))
    assert reported.returncode != 0 and str(refused.value) in reported.stderr


@pytest.mark.parametrize(
    "path", ["/a", "/.a", "/..a", "/a.b", "/var/lib/kubelet", "/run/nvidia/driver/usr/lib64", "/-/_"]
)
def test_folders(path: str) -> None:
    assert install_values.read([], [f"agent.driverDir={path}"]).agent.driverDir == path
    assert install_values.read([], [f"agent.stateDir=/srv{path}"]).agent.stateDir == f"/srv{path}"


@pytest.mark.parametrize(
    "path", ["/", "//a", "/a/", "/a//b", "/.", "/a/..", "/../a", "/a/./b", "a", "/a b", "/a:b", "/ü"]
)
def test_what_is_no_folder(path: str) -> None:
    for setting in (f"agent.driverDir={path}", f"agent.stateDir={path}", f"agent.stateDir=/srv/lamina{path}/"):
        with pytest.raises(install_values.BadInput, match=r"agent\.(driver|state)Dir"):
            install_values.read([], [setting])


def test_a_configuration_that_the_parts_would_refuse_is_refused_before_it_is_printed() -> None:
    with pytest.raises(install_values.BadInput, match=r"devicePlugin\.deviceSplitCount"):
        install_values.read([], ["config.devicePlugin.deviceSplitCount=0"])
    own = [("values.yaml", "config: {apiVersion: lamina.dev/v1alpha1, kind: Configuration}")]
    with pytest.raises(install_values.BadInput, match=r"sharing\.slots must be an integer from 1 to 1000, got 0"):
        install_values.read(own, ["config.sharing.slots=0"])
    assert install_values.read(own, ["config.sharing.slots=4"]).config["sharing"] == {"slots": 4}


def test_later_values_win_and_dots_in_keys_can_be_written() -> None:
    texts = [("a", "agent: {mig: true, driverDir: /a}"), ("b", "agent: {driverDir: /b}")]
    values = install_values.read(texts, [r"agent.nodeSelector.nvidia\.com/gpu='yes'", "agent.driverDir=/c"])
    assert (values.agent.mig, values.agent.driverDir) == (True, "/c")
    assert values.agent.nodeSelector == {"nvidia.com/gpu": "yes"}


@pytest.mark.parametrize("setting", ["agent.mig", "=1", "agent..mig=1", "config=[1"])
def test_what_is_no_setting_is_refused(setting: str) -> None:
    with pytest.raises(install_values.BadInput):
        install_values.read([], [setting])


def test_helm_finds_nothing_wrong_with_it(folder: Path) -> None:
    reported = helm("lint", "--strict", "--namespace", "lamina-system", str(folder))
    assert reported.returncode == 0, reported.stdout


def test_it_says_what_a_list_of_charts_shows(folder: Path) -> None:
    head = yaml.safe_load((folder / "Chart.yaml").read_text())
    assert head["icon"].startswith("data:image/svg+xml;base64,") and head["maintainers"] and head["keywords"]
    crds = yaml.safe_load(head["annotations"]["artifacthub.io/crds"])
    assert sorted(each["name"] for each in crds) == sorted(path.stem for path in (folder / "crds").iterdir())
    readme = (folder / "README.md").read_text()
    assert all(f"| `{path}` |" in readme for path in MENU)


def test_helms_test_reads_with_the_rights_of_viewers(folder: Path) -> None:
    shown = by_helm(folder, "--show-only", "templates/tests/gpus.yaml")
    made = {each["kind"]: each for each in yaml.safe_load_all(shown.stdout)}
    assert all("test" in each["metadata"]["annotations"]["helm.sh/hook"] for each in made.values())
    (container,) = made["Pod"]["spec"]["containers"]
    assert container["args"][0] in get_command(app).commands  # type: ignore[attr-defined]
    binding, account = made["ClusterRoleBinding"], made["ServiceAccount"]["metadata"]["name"]
    assert (binding["roleRef"]["name"], binding["subjects"][0]["name"]) == ("lamina-view", account)
    assert made["Pod"]["spec"]["serviceAccountName"] == account
    assert not made["Pod"]["metadata"]["labels"].items() & PART_OF.items(), "doctor would report that it is not ready"


def test_helm_refuses_an_image_of_no_registry_as_lamina_install_does(folder: Path) -> None:
    reported = by_helm(folder, image=False)
    assert reported.returncode != 0
    assert install_values.image_problem() in reported.stderr


def images(text: str) -> set[str]:
    return set(re.findall(rf"image: \"?({IMAGE}[^\"\s]*)", text))


def test_the_tag_is_the_version_of_the_chart_and_a_digest_wins(folder: Path) -> None:
    head = yaml.safe_load((folder / "Chart.yaml").read_text())
    assert (head["version"], head["appVersion"]) == (chart_version(__version__), __version__)
    assert images(by_helm(folder).stdout) == {f"{IMAGE}:{__version__.replace('+', '_')}"}
    digest = f"sha256:{'0a' * 32}"
    both = ("--set", f"image.digest={digest}", "--set", "image.tag=v7")
    assert images(by_helm(folder, *both).stdout) == {f"{IMAGE}@{digest}"}


def test_the_chart_of_another_commit_replaces_all_pods(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "newer")
    head = yaml.safe_load((folder / "Chart.yaml").read_text()) | {"appVersion": "9.0.0.dev1+g1a2b3c4"}
    (tmp_path / "newer/Chart.yaml").write_text(yaml.safe_dump(head))
    newer = by_helm(tmp_path / "newer")
    assert newer.returncode == 0, newer.stderr
    assert images(newer.stdout) == {f"{IMAGE}:9.0.0.dev1_g1a2b3c4"}


def test_the_chart_of_the_sources_wants_to_know_the_image() -> None:
    sources = Path(__file__).parents[2] / "deploy/helm/lamina"
    assert "belongs to no version; use the chart of a release" in by_helm(sources).stderr
    assert images(by_helm(sources, "--set", "image.tag=v7").stdout) == {f"{IMAGE}:v7"}


def test_the_notes_name_what_the_chart_installs(folder: Path) -> None:
    """`helm template` leaves the notes out, so they are rendered as a template of another name."""
    notes = folder.parent / "notes"
    shutil.copytree(folder, notes)
    text = (folder / "templates/NOTES.txt").read_text()
    quoted = "\n".join(f"    {line}" for line in text.splitlines())
    (notes / "templates/rendered.yaml").write_text(f"notes: |\n{quoted}\n")
    shown = by_helm(notes, "--set", "dashboard.enabled=true", "--show-only", "templates/rendered.yaml")
    assert shown.returncode == 0, shown.stderr
    named = set(re.findall(r"\b(deployment|daemonset|service)/(\S+)", shown.stdout))
    objects = yaml.safe_load_all(by_helm(folder, "--set", "dashboard.enabled=true").stdout)
    made = {(each["kind"].lower(), each["metadata"]["name"]) for each in objects if each}
    assert named and named <= made
    commands = set(re.findall(r"^ *lamina (\w+)", shown.stdout, re.MULTILINE))
    assert commands and commands <= {*get_command(app).commands}  # type: ignore[attr-defined]


def test_no_text_has_anchors(folder: Path) -> None:
    texts = {str(path): path.read_text() for path in folder.rglob("*.yaml")}
    texts["manifests"] = _manifests(install_values.plain(install_values.Values()), InstalledCluster("1.36.0"))
    assert [name for name, text in texts.items() if re.search(r"[&*]id\d", text)] == []


def test_the_values_file_holds_the_defaults() -> None:
    assert yaml.safe_load(chart()["values.yaml"]) == json.loads(
        json.dumps(install_values.plain(install_values.Values()))
    )
