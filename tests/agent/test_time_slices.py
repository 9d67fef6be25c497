"""S3.7: the length of turns is held on GPUs that are shared by time-slicing, and given back."""

from pathlib import Path

import pytest

from lamina.agent.inventory.native_devices import NativeKind
from lamina.agent.inventory.usage import DevicesInUse, GpuUse
from lamina.agent.nvidia.time_slices import REFRESH_S, RETRY_S, TimeSliceManager
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.configuration import load
from lamina.core.gpus import Mode
from lamina.core.sharing import GPU, Replicated, Strategy, TimeSlice
from lamina.errors import BadInput, Outside
from lamina.ports.clock import FakeClock
from lamina.ports.nvml.fake import fake_gpus
from lamina.ports.time_slices import FakeTimeSlices, NvidiaSmi
from tests.agent.node import fake_context, node_offer

FACTS = fake_gpus(2)
A, B = (facts.uuid for facts in FACTS)
REPLICAS = NativeKind(Replicated(name=GPU, offered=GPU, replicas=4), Strategy.TIME_SLICING)
WHOLE = NativeKind(Replicated(name=GPU, offered=GPU, replicas=1))


class SlicedNode:
    """Two GPUs; `used` is what they are used for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.door = FakeTimeSlices()
        self.clock = FakeClock()
        self.reported: list[tuple[str, str]] = []
        self.used: dict[str, GpuUse] = {}

    def start(self, wanted: TimeSlice | None, kind: NativeKind | None = REPLICAS) -> TimeSliceManager:
        """An agent that begins with this configuration."""
        mode = Mode.TIMESLICE if kind is REPLICAS else Mode.WHOLE
        kinds = (kind,) if kind else ()
        self.offer = node_offer(in_use=lambda: DevicesInUse(gpus=self.used), native_kinds=kinds, mode=mode)
        self.reconcile()
        node = fake_context(self.root, clock=self.clock)
        return TimeSliceManager(node, self.offer, self.door, wanted=wanted, report=self.tell)

    def reconcile(self) -> None:
        self.offer.update(driver="515", observed=tuple(ObservedGpu(facts) for facts in FACTS))

    async def tell(self, uuid: str, failure: str) -> None:
        self.reported.append((uuid, failure))

    @property
    def published(self) -> list[tuple[TimeSlice | None, str]]:
        inventory = self.offer.inventory.value
        assert inventory is not None
        return [(gpu.time_slice, gpu.time_slice_failure) for gpu in inventory.gpus]


@pytest.fixture
def node(tmp_path: Path) -> SlicedNode:
    return SlicedNode(tmp_path)


async def test_it_is_set_once_and_repeated_at_intervals(node: SlicedNode) -> None:
    slicer = node.start(TimeSlice.LONG)
    await slicer.reconcile()
    await slicer.reconcile()
    assert node.door.lengths == {A: TimeSlice.LONG, B: TimeSlice.LONG}
    assert node.published == [(TimeSlice.LONG, ""), (TimeSlice.LONG, "")]
    assert node.door.calls == 2
    node.door.lengths.clear()  # the driver was started again
    await node.clock.advance(REFRESH_S)
    await slicer.reconcile()
    assert node.door.lengths == {A: TimeSlice.LONG, B: TimeSlice.LONG}


async def test_nothing_is_touched_where_the_configuration_says_nothing(node: SlicedNode) -> None:
    await node.start(None).reconcile()
    assert node.door.calls == 0
    assert node.published == [(None, ""), (None, "")]


@pytest.mark.parametrize("kind", [WHOLE, None], ids=["whole", "grants"])
async def test_gpus_that_are_not_shared_by_time_slicing_are_left_alone(
    node: SlicedNode, kind: NativeKind | None
) -> None:
    node.used = {B: GpuUse(Mode.TIMESLICE, GPU)}
    await node.start(TimeSlice.SHORT, kind).reconcile()
    assert node.door.lengths == {B: TimeSlice.SHORT}, "in use by replicas from before"


@pytest.mark.parametrize("mode", [Mode.QUOTA, Mode.WHOLE])
async def test_a_gpu_in_another_mode_has_to_wait(node: SlicedNode, mode: Mode) -> None:
    node.used = {A: GpuUse(mode)}
    slicer = node.start(TimeSlice.SHORT)
    await slicer.reconcile()
    assert node.door.lengths == {B: TimeSlice.SHORT}
    node.used = {}
    node.reconcile()
    await slicer.reconcile()
    assert node.door.lengths == {A: TimeSlice.SHORT, B: TimeSlice.SHORT}


@pytest.mark.parametrize("after", [(None, REPLICAS), (TimeSlice.LONG, None), (None, None)], ids=str)
async def test_it_is_given_back_over_a_restart(
    node: SlicedNode, after: tuple[TimeSlice | None, NativeKind | None]
) -> None:
    await node.start(TimeSlice.LONG).reconcile()
    slicer = node.start(*after)
    await slicer.reconcile()
    assert node.door.lengths == {A: TimeSlice.DEFAULT, B: TimeSlice.DEFAULT}
    assert node.published == [(None, ""), (None, "")]
    await node.clock.advance(REFRESH_S)
    await slicer.reconcile()
    await node.start(*after).reconcile()
    assert node.door.calls == 4, "given back once"


async def test_what_cannot_be_given_back_is_tried_again(node: SlicedNode) -> None:
    await node.start(TimeSlice.LONG).reconcile()
    node.door.broken = "the driver is away"
    await node.start(None).reconcile()
    node.door.broken = ""
    slicer = node.start(None)
    await slicer.reconcile()
    assert node.door.lengths == {A: TimeSlice.DEFAULT, B: TimeSlice.DEFAULT}


async def test_a_failure_is_a_state_and_logged_once(node: SlicedNode) -> None:
    node.door.broken = "nvidia-smi does not"
    slicer = node.start(TimeSlice.MEDIUM)
    for _ in range(3):
        await slicer.reconcile()
        await node.clock.advance(RETRY_S)
    assert node.published == [(TimeSlice.MEDIUM, "nvidia-smi does not")] * 2
    assert node.reported == [(A, "nvidia-smi does not"), (B, "nvidia-smi does not")]
    node.door.broken = ""
    await slicer.reconcile()
    assert node.published == [(TimeSlice.MEDIUM, "")] * 2


@pytest.mark.parametrize("note", ["", "{", "[1]"])
async def test_a_note_that_is_not_understood_is_no_note(node: SlicedNode, note: str) -> None:
    (node.root / "time-slices.json").write_text(note)
    await node.start(None).reconcile()
    assert node.door.calls == 0


def test_the_length_of_a_node_goes_before_the_clusters() -> None:
    text = "nativeDevices: {timeSlice: long}\nnodes: {overrides: [{name: a, timeSlice: short}, {name: b}]}"
    read = load(text, "test")
    lengths = [read.for_node(name).time_slice for name in ("a", "b", "c")]
    assert lengths == [TimeSlice.SHORT, TimeSlice.LONG, TimeSlice.LONG]
    assert load("", "test").for_node("a").time_slice is None
    assert [each.number for each in TimeSlice] == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["nativeDevices: {timeSlice: 2}", "nodes: {overrides: [{name: a, timeSlice: Long}]}"])
def test_another_length_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="must be default, short, medium or long, got"):
        load(text, "test")


SCRIPT = """#!/bin/sh
echo "$@" >> {log}
echo {output}
exit {code}
"""


@pytest.mark.parametrize(("code", "output"), [(0, "fine"), (4, "Insufficient Permissions"), (3, "")])
async def test_nvidia_smi_is_called_as_nvidia_documents_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, output: str
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(SCRIPT.format(log=tmp_path / "log", output=output, code=code))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    if code:
        with pytest.raises(Outside, match=f"does not set the time slice of {A}: {output or 'it ended with 3'}"):
            await NvidiaSmi().set(A, TimeSlice.MEDIUM)
    else:
        await NvidiaSmi().set(A, TimeSlice.MEDIUM)
    assert (tmp_path / "log").read_text() == f"compute-policy -i {A} --set-timeslice=2\n"


async def test_a_machine_without_nvidia_smi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Outside, match="nvidia-smi cannot be run: No such file"):
        await NvidiaSmi().set(A, TimeSlice.SHORT)
