"""The networks of `make gpu-test GPU_TEST=networks`: their sizes are the published ones, PyTorch's modules are made of
the same layers, and their rows run on a simulated GPU."""

from collections.abc import Iterator

import pytest
from msgspec import structs

from bench.gpu.network_rows import NETWORK_ROWS, PART
from bench.gpu.networks import CASES, MIN_KERNEL_US, Case, blocks_bytes, kernels_ms, works
from bench.gpu.rows import Row
from bench.gpu.sides import Deadline, Side, side
from lamina.errors import Outside

SMALL = "DeepLab, training of 1 x 384x384"
PUBLISHED = {"ResNet-V2-50": (25.6, 4.1), "ResNet-V2-152": (60.2, 11.6), "VGG-16": (138.4, 15.5)}
"""Millions of parameters, and billions of multiplications for a picture of 224 x 224."""


def of(network: str, *, training: bool = False) -> Case:
    (case,) = (case for case in CASES.values() if (case.network, case.training) == (network, training))
    return case


@pytest.fixture
def simulated() -> Iterator[Side]:
    with side("0", "T4", Deadline(300)) as found:
        yield found


@pytest.mark.parametrize("network", PUBLISHED)
def test_networks_are_as_large_as_published(network: str) -> None:
    found = works(of(network).layers, (3, 224, 224))
    parameters, multiplications = sum(work.parameters for work in found), sum(work.operations for work in found) / 2
    assert (parameters / 1e6, multiplications / 1e9) == pytest.approx(PUBLISHED[network], rel=0.01)


@pytest.mark.parametrize("name", CASES)
def test_training_does_three_times_the_work_and_keeps_what_inference_hands_on(name: str) -> None:
    case = CASES[name]
    inference, training = (structs.replace(case, training=training) for training in (False, True))
    assert 3 * sum(kernels_ms(inference)) <= sum(kernels_ms(training)) < 6 * sum(kernels_ms(inference))
    assert min(kernels_ms(case)) >= MIN_KERNEL_US / 1000
    assert sum(blocks_bytes(training)) > 3 * sum(blocks_bytes(inference)[:-1])
    more = structs.replace(case, batch=2 * case.batch)
    assert sum(kernels_ms(case)) < sum(kernels_ms(more)) <= 2 * sum(kernels_ms(case)) + 1e-9


@pytest.mark.parametrize("name", CASES)
def test_pytorch_has_the_same_layers(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from bench.gpu.probes.network_torch import module

    case = CASES[name]
    model, _ = module(case.layers, torch.zeros(2, *case.shape, device="meta"))
    assert sum(each.numel() for each in model.parameters()) == sum(
        work.parameters for work in works(case.layers, case.shape)
    )


def test_a_step_of_pytorch_trains() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from bench.gpu.probes.network_torch import step_of

    step_of(structs.replace(CASES[SMALL], shape=(3, 64, 64), batch=2), "cpu")()
    assert torch.is_grad_enabled()


def test_every_case_is_tried_in_the_same_ways() -> None:
    ways = [[row.name.removeprefix(name) for row in NETWORK_ROWS if row.arguments[0] == name] for name in CASES]
    assert all(each == ways[0] for each in ways)
    assert [name.split(",")[-1].strip() for name in ways[0]] == [
        "", "2 at once without limits", "50 % each", "4 at once without limits", "25 % each",
        "more memory than the GPU has",
    ]  # fmt: skip
    assert {row.part for row in NETWORK_ROWS} == {PART}


def of_small(how: str) -> Row:
    (row,) = (row for row in NETWORK_ROWS if row.name == f"{SMALL}{how}")
    return row


def test_programs_at_once_have_parts_of_the_native_speed(simulated: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, two = of_small(""), of_small(", 2 at once, 50 % each")
    with pytest.raises(Outside, match=f"^not tested: there is no native time, because '{SMALL}' has none$"):
        simulated.ask(two)
    times = ([{"a step": 1200.0}, {"a step": 1000.0}], [{"a step": 1300.0}, {"a step": 1100.0}])
    monkeypatch.setattr("bench.gpu.sides.in_turns", lambda *_: times)
    assert simulated.ask(alone)["a step, native us"] == 1000
    monkeypatch.setattr("bench.gpu.sides.at_once", lambda *_: [{"a step": 2000.0}, {"a step": 4000.0}])
    assert simulated.ask(two) == {"share of 50 %, number 1": 50, "share of 50 %, number 2": 25}


def test_two_programs_hold_more_memory_than_the_gpu_has(simulated: Side) -> None:
    """Each ends where it cannot have what it is to hold."""
    row = structs.replace(of_small(", 2 at once, more memory than the GPU has"), native="")
    assert row.memory_percent * float(row.arguments[-1]) / 100 * len(row.cores) > 125
    found = simulated.ask(structs.replace(row, arguments=(SMALL, "0.1", *row.arguments[2:])))
    assert sorted(found) == ["program 1", "program 2"] and min(found.values()) >= 1000 * sum(kernels_ms(CASES[SMALL]))


def test_a_network_that_a_share_has_no_memory_for_is_not_tested(simulated: Side) -> None:
    name = of("ResNet-V2-50", training=True).name
    (large,) = (row for row in NETWORK_ROWS if row.name == f"{name}, 4 at once, 25 % each")
    with pytest.raises(Outside, match=r"^not tested: it needs [\d,]+ MiB, and a share has 3,840 MiB$"):
        simulated.ask(large)


def test_a_simulated_gpu_needs_no_pytorch(simulated: Side) -> None:
    row = structs.replace(NETWORK_ROWS[0], way="free", needs="no_such_module", arguments=(SMALL, "0.1", "100", "0"))
    assert set(simulated.ask(row)) == {"a step"}
    with pytest.raises(Outside, match=r"^not tested: no_such_module cannot be imported"):
        simulated.ask(structs.replace(row, simulated_probe=""))
