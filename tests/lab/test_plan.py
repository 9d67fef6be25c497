from pathlib import Path

import pytest

from lamina.core.cards import CARDS
from lamina.errors import BadInput
from lamina_lab.cluster import plan, up
from lamina_lab.simgpu import GpuSpec


@pytest.mark.parametrize("model", sorted(CARDS))
def test_every_card_of_the_table_makes_a_node(model: str) -> None:
    made = plan.from_options(nodes=2, gpus_per_node=4, gpu=model, port=0)
    assert [node.name for node in made.nodes] == ["node-0", "node-1"]
    assert all(node.gpus == (GpuSpec(model=model, count=4),) for node in made.nodes)


def test_a_node_may_have_no_gpu() -> None:
    assert plan.from_options(nodes=1, gpus_per_node=0, gpu=plan.DEFAULT_GPU, port=0).nodes[0].gpus == ()


@pytest.mark.parametrize(
    ("nodes", "gpus", "model", "sentence"),
    [
        (0, 1, plan.DEFAULT_GPU, "--nodes must be from 1 to 64, got 0"),
        (-1, 1, plan.DEFAULT_GPU, "--nodes must be from 1 to 64, got -1"),
        (65, 1, plan.DEFAULT_GPU, "--nodes must be from 1 to 64, got 65"),
        (1, 17, plan.DEFAULT_GPU, "17 GPUs"),
        (1, -2, plan.DEFAULT_GPU, "count is -2"),
        (1, 1, "RTX-9999", "RTX-9999"),
    ],
)
def test_invalid_options_are_refused(nodes: int, gpus: int, model: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        plan.from_options(nodes=nodes, gpus_per_node=gpus, gpu=model, port=0)


def described(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(text)
    return path


def test_a_file_describes_each_node(tmp_path: Path) -> None:
    path = described(
        tmp_path,
        "nodes:\n- name: a\n  gpus: [{model: T4, count: 2}, {model: A30}]\n  labels: {pool: x}\n- name: b\n",
    )
    made = plan.from_file(path, port=8443)
    assert made.port == 8443
    assert made.nodes[0].labels == {"pool": "x"}
    assert [(group.model, group.count) for group in made.nodes[0].gpus] == [("T4", 2), ("A30", 1)]
    assert made.nodes[1].gpus == ()


@pytest.mark.parametrize("name", ["gpu-1.example.com", "1.2.3.4", ".".join(["a" * 63] * 3)])
def test_a_node_may_have_the_name_of_a_host(tmp_path: Path, name: str) -> None:
    (node,) = plan.from_file(described(tmp_path, f"nodes: [{{name: {name}}}]"), port=0).nodes
    assert node.name == name


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "does not describe a lab"),
        ("nodes: []", "the number of nodes must be from 1 to 64, got 0"),
        ("nodes: {}", "does not describe a lab"),
        ("nodes: [{name: a, gpu: []}]", "unknown field `gpu`"),
        ("nodes: [{name: A}]", "not a valid node name"),
        ("nodes: [{name: a..b}]", "not a valid node name"),
        ("nodes: [{name: .a}]", "not a valid node name"),
        ("nodes: [{name: a.}]", "not a valid node name"),
        (f"nodes: [{{name: {'a' * 64}}}]", "not a valid node name"),
        (f"nodes: [{{name: {'.'.join(['a' * 63] * 4)}}}]", "not a valid node name"),
        ("nodes: [{name: a}, {name: a}]", "two nodes are named a"),
        ("nodes: [{name: a, gpus: [{model: T4, count: 0}]}]", "count is 0"),
        ("nodes: [{name: a, gpus: [{model: T4, count: two}]}]", r"\$.nodes\[0\].gpus\[0\].count"),
        ("nodes: [{name: a, gpus: [{model: T5}]}]", "T5"),
        ("nodes: [{name: a, memoryMiB: 5}]", "memoryMiB"),
        ("nodes: [", "is not YAML"),
    ],
)
def test_an_invalid_file_is_refused_in_one_sentence_with_its_name(tmp_path: Path, text: str, sentence: str) -> None:
    path = described(tmp_path, text)
    with pytest.raises(BadInput, match=sentence) as refusal:
        plan.from_file(path, port=0)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*nowhere\.yaml"):
        plan.from_file(tmp_path / "nowhere.yaml", port=0)


def test_a_lab_of_another_version_than_the_product_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina_lab.cluster.up.version", lambda _: "9.0.0")
    lab = plan.from_options(nodes=1, gpus_per_node=1, gpu=plan.DEFAULT_GPU, port=0)
    with pytest.raises(BadInput, match=r"lamina-lab 9\.0\.0 is not for lamina .*pip install lamina==9\.0\.0"):
        up.up("refused", lab, config_file=None, kubeconfig=None, say=print, progress=print)
