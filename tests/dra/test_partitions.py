"""MIG devices on demand: counters allow exactly the layouts that a card can have, as the scheduler decides by them."""

import random
from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from lamina.core.gpus import Mode
from lamina.core.grants import MigInstance, Share
from lamina.core.mig import MigCard, Placed
from lamina.core.mig_cards import MIG_CARDS
from lamina.dra.names import DRIVER, HAMI_DRIVER
from lamina.dra.offers import DriverVersions, OfferedGpu, offered_devices, shared_counters
from lamina.dra.partitions import PartitionOptions
from lamina.dra.shares import require_room
from lamina.dra.slices import node_slices
from lamina.errors import BadInput, NotYet
from lamina.ports.nvml.fake import fake_gpus
from lamina_lab.api.schema.device_validation import resource_slice
from tests.lab_scheduler.device_objects import CLASSES, AllocatedDevices, capacity, claim, request

A100 = MIG_CARDS["A100-40GB"]
FACTS = [structs.replace(each, mig_capable=True) for each in fake_gpus(9, memory_mib=40960)]


def options(card: MigCard = A100, **more: Any) -> PartitionOptions:
    return PartitionOptions(card=card, profiles=card.profiles, **more)


def gpus(count: int = 1, **more: Any) -> list[OfferedGpu]:
    return [OfferedGpu(facts=each, options=options(**more)) for each in FACTS[:count]]


def slices_of(offered: list[OfferedGpu]) -> list[dict[str, Any]]:
    documents = [each.document for each in offered_devices(offered, DriverVersions())]
    return node_slices("node-0", DRIVER, documents, [], shared_counters(offered))


def cluster(offered: list[OfferedGpu]) -> AllocatedDevices:
    return AllocatedDevices(slices_of(offered), CLASSES)


def wants(name: str, profile: str) -> Any:
    return claim(name, request("mig", "mig.nvidia.com", f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"))


def possible(card: MigCard, layout: list[Placed]) -> bool:
    try:
        card.check(layout)
    except BadInput:
        return False
    return True


def counted(found: PartitionOptions, layout: list[Placed]) -> bool:
    """Whether the counters suffice for all of the layout."""
    taken = Counter[str]()
    for each in layout:
        profile = found.card.profile(each.profile)
        taken.update({name: int(value["value"]) for name, value in found.consumed(profile, each.start).items()})
    return all(count <= int(found.counters()[name]["value"]) for name, count in taken.items())


@pytest.mark.parametrize("name", MIG_CARDS)
def test_counters_allow_exactly_the_layouts_of_a_card(name: str) -> None:
    found, drawn = options(MIG_CARDS[name]), random.Random(name)
    places = [Placed(profile.name, start) for profile, start in found.places()]
    assert sorted(places) == sorted(Placed(each.name, start) for each in found.profiles for start in each.starts)
    answers = Counter[bool]()
    for _ in range(2000):
        layout = drawn.sample(places, drawn.randint(1, min(5, len(places))))
        answers[possible(found.card, layout)] += 1
        assert counted(found, layout) == possible(found.card, layout), layout
    assert min(answers[True], answers[False]) > 50


@pytest.mark.parametrize("count", [1, 9])
def test_the_api_server_takes_slices_with_counters(count: int) -> None:
    found = slices_of(gpus(count))
    assert [resource_slice(each) for each in found] == [[]] * len(found)
    kinds = [("devices" in each["spec"], "sharedCounters" in each["spec"]) for each in found]
    assert kinds == sorted(kinds, reverse=True) and {(True, False), (False, True)} == set(kinds)
    assert {each["spec"]["pool"]["resourceSliceCount"] for each in found} == {len(found)}


def without_identity(slices: Any) -> Any:
    """The contents, without what no two GPUs have in common."""
    if isinstance(slices, list):
        return [without_identity(each) for each in slices]
    if isinstance(slices, dict):
        own = ("uuid", "parentUUID", "pcieBusID", "resource.kubernetes.io/pciBusID", f"{HAMI_DRIVER}/uuid")
        own += (f"{HAMI_DRIVER}/pcieBusID", "metadata")
        return {key: without_identity(value) for key, value in slices.items() if key not in own}
    return slices


def test_idle_nodes_of_one_type_publish_the_same_devices() -> None:
    """Autoscalers take one of them for a node that does not exist yet."""

    def of(kind: str) -> list[dict[str, Any]]:
        return slices_of([
            OfferedGpu(facts=structs.replace(each, uuid=f"GPU-{kind}-{each.index}"), bus_id=bus, options=options())
            for each, bus in zip(FACTS, (f"00000000:{ord(kind):02X}:{at:02X}.0" for at in range(9)), strict=True)
        ])  # fmt: skip

    assert of("a") != of("b") and without_identity(of("a")) == without_identity(of("b"))


def test_shares_mig_devices_and_the_whole_gpu_exclude_each_other() -> None:
    gpu = cluster(gpus())
    assert gpu.devices(claim("share", request(capacity=capacity(memory="4Gi")))) == ["gpu-0"]
    assert gpu.devices(claim("share-too", request(capacity=capacity(memory="8Gi")))) == ["gpu-0"]
    assert gpu.devices(wants("mig", "1g.5gb")) is None
    gpu.free("share")
    gpu.free("share-too")
    assert gpu.devices(wants("mig", "1g.5gb")) == ["gpu-0-mig-1g5gb-19-6"]
    assert gpu.devices(claim("whole", request())) is None
    assert gpu.devices(claim("share", request(capacity=capacity(memory="4Gi")))) is None


def test_small_mig_devices_leave_room_for_a_large_one() -> None:
    gpu = cluster(gpus())
    found = [gpu.devices(wants(str(number), "1g.5gb")) for number in range(3)]
    assert found == [["gpu-0-mig-1g5gb-19-6"], ["gpu-0-mig-1g5gb-19-5"], ["gpu-0-mig-1g5gb-19-4"]]
    assert gpu.devices(wants("large", "4g.20gb")) == ["gpu-0-mig-4g20gb-5-0"]
    assert gpu.devices(wants("more", "1g.5gb")) is None


def test_what_others_made_stays_and_is_offered_while_it_is_free() -> None:
    kept = (Placed("3g.20gb", 4), Placed("1g.5gb", 0))
    names = [each.name for each in offered_devices(gpus(kept=kept, used={kept[0]}), DriverVersions())]
    assert names == [
        "gpu-0-mig-1g5gb-19-3", "gpu-0-mig-1g5gb-19-2", "gpu-0-mig-1g5gb-19-1", "gpu-0-mig-1g5gb-19-0",
        "gpu-0-mig-1g5gb-me-20-3", "gpu-0-mig-1g5gb-me-20-2", "gpu-0-mig-1g5gb-me-20-1", "gpu-0-mig-1g10gb-15-2",
        "gpu-0-mig-2g10gb-14-2",
    ]  # fmt: skip


def test_only_profiles_that_a_rule_allows_are_offered() -> None:
    found = PartitionOptions(card=A100, profiles=(A100.profile("2g.10gb"),))
    assert [(profile.name, start) for profile, start in found.places()] == [("2g.10gb", start) for start in (4, 2, 0)]


def share(profile: str = "", start: int = 0) -> Share:
    mig = MigInstance(profile=profile, start=start) if profile else None
    return Share(gpu=FACTS[0].uuid, memory_mib=4096, mode=Mode.MIG if mig else Mode.QUOTA, mig=mig)


@pytest.mark.parametrize(
    ("wanted", "held", "fits"),
    [
        (share("1g.5gb", 6), share("1g.5gb", 5), True),
        (share("1g.5gb", 6), share("1g.5gb", 6), False),
        (share("1g.5gb", 6), share("3g.20gb", 4), False),
        (share("3g.20gb", 4), share("1g.5gb", 6), False),
        (share("3g.20gb", 4), share("4g.20gb", 0), True),
        (share("1g.5gb", 6), share(), False),
        (share(), share("1g.5gb", 6), False),
        (share(), share(), True),
    ],
)
def test_the_agent_compares_places_too(wanted: Share, held: Share, fits: bool) -> None:
    offered = offered_devices(gpus(), DriverVersions())
    try:
        require_room([wanted], {"default/other": [held]}, offered)
    except NotYet as error:
        assert not fits and "has no room for the claim as long as it is prepared for default/other" in str(error)
    else:
        assert fits


@pytest.mark.parametrize(("more_mib", "cores", "fits"), [(0, 60, True), (1, 60, False), (0, 61, False)])
def test_claims_share_a_device_up_to_all_of_it(more_mib: int, cores: int, fits: bool) -> None:
    offered = offered_devices(gpus(), DriverVersions())
    (whole,) = [each.memory_mib for each in offered if each.place is None]
    held = structs.replace(share(), cores=40)
    wanted = structs.replace(share(), memory_mib=whole - held.memory_mib + more_mib, cores=cores)
    for others in ({"default/other": [held]}, {}):
        mine = [wanted] if others else [wanted, held]
        if fits:
            require_room(mine, others, offered)
        else:
            with pytest.raises(NotYet if others else BadInput):
                require_room(mine, others, offered)
