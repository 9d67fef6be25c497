"""MIG on a simulated machine: every layout of every card can be made and no other, and instances are devices apart."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.core.mig_cards import MIG_CARDS
from lamina_lab.simgpu import read
from tests.simgpu.machines import Machine
from tests.simgpu.mig_scripts import A100, PARTITION, TWO_HALVES, script

MODELS = {
    "A100-SXM4-40GB": "A100-40GB", "A100-SXM4-80GB": "A100-80GB", "H100-SXM5-80GB": "H100-80GB",
    "H200": "H200-141GB", "A30": "A30-24GB",
    "RTX-PRO-6000-SERVER": "RTX-PRO-6000-96GB", "RTX-PRO-6000-WORKSTATION": "RTX-PRO-6000-96GB",
}  # fmt: skip

EVERY_LAYOUT = """
import ctypes, json, sys
import pynvml as nv
nv.nvmlInit()
gpu = nv.nvmlDeviceGetHandleByIndex(0)
places = json.loads(sys.argv[1])  # [[profile id, start, size, slices as bits, media engines]]
media = int(sys.argv[2])
assert nv.nvmlDeviceSetMigMode(gpu, 1) == 0 and nv.nvmlDeviceGetMigMode(gpu) == [1, 1]
seen = refused = 0

def there():
    found = []
    for ident in {place[0] for place in places}:
        count, handles = ctypes.c_uint(8), (nv.c_nvmlGpuInstance_t * 8)()
        nv.nvmlDeviceGetGpuInstances(gpu, ident, handles, ctypes.byref(count))
        found += [nv.nvmlGpuInstanceGetInfo(each) for each in handles[: count.value]]
    assert len({info.id for info in found}) == len(found), "two instances of one id"
    return sorted((info.profileId, info.placement.start, info.placement.size) for info in found)

def visit(layout, first, used, claimed):
    global seen, refused
    seen += 1
    assert there() == sorted(tuple(place[:3]) for place in layout)
    for number, (ident, start, size, mask, claims) in enumerate(places):
        at = nv.c_nvmlGpuInstancePlacement_t(start=start, size=size)
        try:
            made = nv.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, ident, ctypes.byref(at))
        except nv.NVMLError as error:
            assert error.value == nv.NVML_ERROR_INSUFFICIENT_RESOURCES and (mask & used or claimed + claims > media)
            refused += 1
            continue
        assert not mask & used and claimed + claims <= media
        if number >= first:
            visit([*layout, places[number]], number, used | mask, claimed + claims)
        nv.nvmlGpuInstanceDestroy(made)

visit([], 0, 0, 0)
print(json.dumps([seen, refused]))
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine", A100)
    yield made
    made.close()


def layouts(places: list[tuple[int, ...]], media: int, first: int = 0, used: int = 0, claimed: int = 0) -> int:
    return 1 + sum(
        layouts(places, media, number, used | mask, claimed + claims)
        for number, (_, _, _, mask, claims) in enumerate(places)
        if number >= first and not mask & used and claimed + claims <= media
    )


@pytest.mark.parametrize("model", MODELS)
def test_every_layout_of_a_card_can_be_made_and_no_other(model: str, tmp_path: Path) -> None:
    card = MIG_CARDS[MODELS[model]]
    places = [
        (profile.id, start, profile.size, mask, profile.media)
        for profile in card.profiles
        for start, mask in zip(profile.starts, profile.masks, strict=True)
    ]
    machine = Machine(tmp_path / "machine", f"gpus: [{{model: {model}}}]")
    seen, refused = script(machine, EVERY_LAYOUT, json.dumps(places), str(card.media))
    assert seen == layouts(places, card.media)
    assert refused > seen


PROFILES = """
import ctypes, json
import pynvml as nv
nv.nvmlInit()
gpu = nv.nvmlDeviceGetHandleByIndex(0)
found = {}
for index in range(nv.NVML_GPU_INSTANCE_PROFILE_COUNT):
    try:
        info = nv.nvmlDeviceGetGpuInstanceProfileInfo(gpu, index)
    except nv.NVMLError:
        continue
    count, out = ctypes.c_uint(16), (nv.c_nvmlGpuInstancePlacement_t * 16)()
    nv.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, info.id, out, ctypes.byref(count))
    starts = [place.start for place in out[: count.value]]
    name = info.name.decode() if isinstance(info.name, bytes) else info.name
    found[name] = [info.id, index, info.sliceCount, info.instanceCount, starts, out[0].size]
print(json.dumps(found))
"""


@pytest.mark.parametrize("model", MODELS)
def test_profiles_are_reported_as_in_the_table(model: str, tmp_path: Path) -> None:
    card = MIG_CARDS[MODELS[model]]
    reported = script(Machine(tmp_path / "machine", f"gpus: [{{model: {model}}}]"), PROFILES)
    assert reported == {
        f"MIG {p.name}": [p.id, p.index, p.slices, card.most(p), list(p.starts), p.size] for p in card.profiles
    }


def test_instances_can_be_read_from_outside(machine: Machine) -> None:
    assert not read(machine.path).instances
    devices = script(machine, PARTITION, TWO_HALVES)
    state = read(machine.path)
    assert [gpu.mig_enabled for gpu in state.gpus] == [True, False]
    found = [(each.uuid, each.parent, each.profile, each.start) for each in state.instances]
    first = state.gpus[0].uuid
    assert found == [(devices[0][0], first, "3g.20gb", 0), (devices[1][0], first, "3g.20gb", 4)]


def test_a_process_sees_one_device_with_the_memory_and_multiprocessors_of_its_instance(
    machine: Machine,
) -> None:
    (first, name), _ = script(machine, PARTITION, json.dumps([[19, 0, 0, 1], [9, 2, 4, 4]]))
    assert name == "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
    for env in ({"NVIDIA_VISIBLE_DEVICES": first}, {"CUDA_VISIBLE_DEVICES": first}):
        process = machine.started(**env)
        assert process("count()") == (0, 1)
        assert process("uuids()") == [first.replace("MIG-", "GPU-")]
        assert process("(lambda n: (cu.cuDeviceTotalMem_v2(byref(n), 0), n.value // MIB))(c_size_t())") == (0, 4864)
        assert process("(lambda n: (cu.cuDeviceGetAttribute(byref(n), 16, 0), n.value))(c_int())") == (0, 14)


def test_memory_and_time_of_instances_are_apart(machine: Machine) -> None:
    (first, _), (second, _) = script(machine, PARTITION, TWO_HALVES)
    one, other = (machine.started(CUDA_VISIBLE_DEVICES=uuid) for uuid in (first, second))
    assert one("alloc(19000)")[0] == 0
    assert one("alloc(1000)")[0] != 0
    assert other("alloc(19000)")[0] == 0
    assert one("spin(3000)") == 0
    assert other("spin(1) or sync()") == 0
    assert one("cu.cuStreamQuery(None)") == 600, "the other did not wait for it"


def test_a_partitioned_gpu_is_not_a_cuda_device(machine: Machine) -> None:
    script(machine, PARTITION, "[]")
    assert machine.process()("init(), count()") == (0, (0, 1))
    only = machine.process(NVIDIA_VISIBLE_DEVICES=machine.state().gpus[0].uuid)
    assert only("init()") == 100, "no device, for nothing was made of it"


DESTROY = """
import json
import pynvml as nv
nv.nvmlInit()
gpu = nv.nvmlDeviceGetHandleByIndex(0)
made = nv.nvmlDeviceGetGpuInstanceById(gpu, 2)

def said(act):
    try:
        return act() or 0
    except nv.NVMLError as error:
        return error.value

print(json.dumps([
    said(lambda: nv.nvmlGpuInstanceDestroy(made)),
    said(lambda: nv.nvmlComputeInstanceDestroy(nv.nvmlGpuInstanceGetComputeInstanceById(made, 0))),
    said(lambda: nv.nvmlDeviceSetMigMode(gpu, 0)),
    nv.nvmlDeviceGetMigMode(gpu),
]))
"""


def test_an_instance_is_not_destroyed_under_a_process(machine: Machine) -> None:
    ((uuid, _),) = script(machine, PARTITION, json.dumps([[9, 2, 0, 4]]))
    user = machine.started(CUDA_VISIBLE_DEVICES=uuid)
    in_use = 19
    assert script(machine, DESTROY) == [in_use, in_use, in_use, [1, 0]]
    user.kill()
    assert script(machine, DESTROY) == [in_use, 0, in_use, [1, 0]], "its compute instance goes first"
    assert script(machine, DESTROY) == [0, 6, 0, [0, 0]]


def test_the_mode_is_pending_while_the_gpu_is_in_use(machine: Machine) -> None:
    user = machine.started(NVIDIA_VISIBLE_DEVICES="0")
    ask = (
        "import pynvml as nv, json\nnv.nvmlInit()\ngpu = nv.nvmlDeviceGetHandleByIndex(0)\n"
        "print(json.dumps([nv.nvmlDeviceSetMigMode(gpu, 1), *nv.nvmlDeviceGetMigMode(gpu)]))"
    )
    assert script(machine, ask) == [19, 0, 1]
    user.kill()
    assert script(machine, ask) == [0, 1, 1]


def test_an_instance_recreated_at_its_place_has_the_same_name(machine: Machine) -> None:
    made = script(machine, PARTITION, TWO_HALVES)
    again = Machine(machine.path, A100)
    assert script(again, PARTITION, TWO_HALVES) == made
    assert len({uuid for uuid, _ in made}) == 2
