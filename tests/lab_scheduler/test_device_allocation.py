"""Which devices the structured allocator gives to claims: the rules of Kubernetes 1.36."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.ports.kube import Object
from lamina_lab.scheduler.devices.allocator import Allocator
from lamina_lab.scheduler.devices.capacity import consumed
from lamina_lab.scheduler.devices.model import DeviceCapacity
from lamina_lab.scheduler.devices.search import AllocationError
from tests.lab_scheduler.device_objects import (
    CLASSES,
    GIB,
    AllocatedDevices,
    capacity,
    claim,
    counter_set,
    device_class,
    gpu,
    mig,
    node,
    request,
    slices,
    uses,
)

GPUS = slices(gpu("gpu-0"), gpu("gpu-1"))
SHARED = slices(gpu("gpu-0", shareable=True), gpu("gpu-1", shareable=True))


def partitioned(**more: Any) -> list[Object]:
    """A GPU of four memory slices: whole, shared, or as MIG devices of one or two slices."""
    parts = [mig(f"mig-{at}", "gpu-0", at) for at in range(4)]
    pairs = [mig("mig-01", "gpu-0", 0, 1), mig("mig-23", "gpu-0", 2, 3)]
    return slices(gpu("gpu-0", counters=True, **more), *pairs, *parts, sets=[counter_set("gpu-0")])


def test_each_claim_gets_a_device_of_its_own_in_the_published_order() -> None:
    cluster = AllocatedDevices(GPUS)
    assert cluster.devices(claim("a", request())) == ["gpu-0"]
    assert cluster.devices(claim("b", request())) == ["gpu-1"]
    assert cluster.devices(claim("c", request())) is None
    cluster.free("a")
    assert cluster.devices(claim("c", request())) == ["gpu-0"]


def test_the_result_says_which_device_where() -> None:
    [result] = AllocatedDevices(GPUS).allocate(claim("a", request())) or []
    assert result == {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "node-0", "device": "gpu-0"}


def test_an_allocation_of_a_local_device_names_its_node() -> None:
    cluster = AllocatedDevices(GPUS)
    cluster.allocate(claim("a", request()))
    field = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
    assert cluster.allocated[0]["status"]["allocation"]["nodeSelector"] == {
        "nodeSelectorTerms": [{"matchFields": [field]}]
    }


def test_devices_of_other_nodes_are_out_of_reach() -> None:
    assert AllocatedDevices(GPUS).devices(claim("a", request()), on="node-1") is None


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("device.attributes['gpu.nvidia.com'].index == 1", ["gpu-1"]),
        ("device.attributes['gpu.nvidia.com'].uuid == 'GPU-gpu-1'", ["gpu-1"]),
        ("device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*h100.*$')", ["gpu-0"]),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0", ["gpu-0"]),
        ("device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('80Gi'))", None),
        ("device.capacity['gpu.nvidia.com'].memory == quantity('81920Mi')", ["gpu-0"]),
        ("device.attributes['gpu.nvidia.com'].driverVersion.isLessThan(semver('580.100.0'))", ["gpu-0"]),
        ("device.attributes['gpu.nvidia.com'].driverVersion.major() == 570", None),
        ("device.attributes['example.com'].rack == 'r1'", ["gpu-0"]),
        ("'rack' in device.attributes['example.com']", ["gpu-0"]),
        ("'rack' in device.attributes['other.com']", None),
        ("has(device.attributes['other.com'].rack)", None),
        ("device.allowMultipleAllocations", None),
        ("device.driver == 'gpu.nvidia.com'", ["gpu-0"]),
    ],
)
def test_selectors_choose_devices(selector: str, selected: list[str] | None) -> None:
    assert AllocatedDevices(GPUS).devices(claim("a", request("gpu", "gpu.nvidia.com", selector))) == selected


def test_a_selector_on_an_attribute_that_a_device_lacks_fails_the_allocation() -> None:
    missing = claim("a", request("gpu", "gpu.nvidia.com", "device.attributes['gpu.nvidia.com'].color == 'red'"))
    with pytest.raises(AllocationError, match=r"claim default/a: selector #0: .*'color'"):
        AllocatedDevices(GPUS).devices(missing)


def test_a_selector_is_evaluated_only_until_there_are_enough_devices() -> None:
    found = slices(gpu("gpu-0"), mig("mig-0", "gpu-0", 0), sets=[counter_set("gpu-0")])
    classes = [{"metadata": {"name": "any"}, "spec": {}}]
    chosen = request("r", "any", "device.attributes['gpu.nvidia.com'].index == 0")
    assert AllocatedDevices(found, classes).devices(claim("a", chosen)) == ["gpu-0"]
    with pytest.raises(AllocationError, match="index"):
        AllocatedDevices(found, classes).devices(claim("a", {**chosen, "exactly": {**chosen["exactly"], "count": 2}}))


def test_an_unknown_class_fails_the_allocation() -> None:
    with pytest.raises(AllocationError, match="claim default/a, request gpu: could not retrieve device class big"):
        AllocatedDevices(GPUS).devices(claim("a", request("gpu", "big")))


def test_counts_and_all_devices() -> None:
    assert AllocatedDevices(GPUS).devices(claim("a", request(count=2))) == ["gpu-0", "gpu-1"]
    assert AllocatedDevices(GPUS).devices(claim("a", request(count=3))) is None
    assert AllocatedDevices(GPUS).devices(claim("a", request(allocationMode="All"))) == ["gpu-0", "gpu-1"]
    assert AllocatedDevices(GPUS).devices(claim("a", request("m", "mig.nvidia.com", allocationMode="All"))) is None


def test_all_devices_are_given_only_if_all_are_free() -> None:
    cluster = AllocatedDevices(GPUS)
    cluster.allocate(claim("a", request()))
    assert cluster.devices(claim("b", request(allocationMode="All"))) is None


def test_a_claim_has_at_most_32_devices() -> None:
    many = slices(*(gpu(f"gpu-{at}") for at in range(33)))
    assert len(AllocatedDevices(many).devices(claim("a", request(count=32))) or ()) == 32
    assert AllocatedDevices(many).devices(claim("a", request(count=33))) is None
    assert AllocatedDevices(many).devices(claim("a", request("one", count=32), request("two"))) is None
    assert AllocatedDevices(many).devices(claim("a", request(allocationMode="All"))) is None


def test_an_alternative_with_fewer_devices_is_chosen_where_32_are_the_most() -> None:
    found = slices(*(gpu(f"gpu-{at}") for at in range(40)))

    def wanted(name: str, count: int) -> Object:
        return {"name": name, "deviceClassName": "gpu.nvidia.com", "count": count}

    def alternatives(name: str, *counts: int) -> Object:
        return {"name": name, "firstAvailable": [wanted(f"s{count}", count) for count in counts]}

    chosen = AllocatedDevices(found).allocate(claim("a", alternatives("x", 20, 5), alternatives("y", 20, 12))) or []
    assert {result["request"] for result in chosen} == {"x/s20", "y/s12"}
    assert AllocatedDevices(found).devices(claim("a", alternatives("x", 33, 34))) is None


def test_several_claims_of_a_pod_are_allocated_together_or_not_at_all() -> None:
    cluster = AllocatedDevices(GPUS)
    assert cluster.devices(claim("a", request()), claim("b", request(count=2))) is None
    assert cluster.allocated == []
    assert cluster.devices(claim("a", request()), claim("b", request())) == ["gpu-0", "gpu-1"]


def test_the_search_gives_up_a_device_that_a_later_request_needs() -> None:
    second = request("second", "gpu.nvidia.com", "device.attributes['gpu.nvidia.com'].index == 0")
    assert AllocatedDevices(GPUS).devices(claim("a", request("first"), second)) == ["gpu-1", "gpu-0"]


def test_shares_fill_a_device_up_to_its_capacity() -> None:
    cluster = AllocatedDevices(SHARED)
    half = request(capacity=capacity(memory="40Gi", cores="30"))
    found = cluster.allocate(claim("a", half)) or []
    assert found[0]["consumedCapacity"] == {"memory": "40Gi", "cores": "30"}
    assert found[0]["shareID"] == "share-1"
    assert cluster.devices(claim("b", half)) == ["gpu-0"]
    assert cluster.devices(claim("c", half), claim("d", half)) == ["gpu-1", "gpu-1"]
    assert cluster.devices(claim("e", request(capacity=capacity(memory="1Mi")))) is None
    cluster.free("b")
    assert cluster.devices(claim("e", half)) == ["gpu-0"]


def test_a_request_without_an_amount_takes_the_default_which_is_the_whole_memory() -> None:
    cluster = AllocatedDevices(SHARED)
    [whole] = cluster.allocate(claim("a", request())) or []
    assert whole["consumedCapacity"] == {"memory": "80Gi", "cores": "0"}
    assert cluster.devices(claim("b", request(capacity=capacity(memory="1Gi")))) == ["gpu-1"]
    assert cluster.devices(claim("c", request())) is None


def test_compute_runs_out_before_memory() -> None:
    cluster = AllocatedDevices(slices(gpu("gpu-0", shareable=True)))
    most = request(capacity=capacity(memory="1Gi", cores="60"))
    assert cluster.devices(claim("a", most)) == ["gpu-0"]
    assert cluster.devices(claim("b", most)) is None


def test_a_request_for_a_capacity_that_no_device_has_is_not_served() -> None:
    assert AllocatedDevices(SHARED).devices(claim("a", request(capacity=capacity(bandwidth="1")))) is None


def test_one_claim_may_take_two_shares_of_one_device() -> None:
    part = capacity(memory="10Gi")
    assert AllocatedDevices(SHARED).devices(claim("a", request("x", capacity=part), request("y", capacity=part))) == [
        "gpu-0",
        "gpu-0",
    ]


@given(
    st.integers(0, 2 * 80 * GIB),
    st.integers(1, 64).map(lambda mib: mib * 2**20),
    st.integers(0, 16).map(lambda mib: mib * 2**20),
)
def test_amounts_are_rounded_up_to_the_policy(asked: int, step: int, least: int) -> None:
    most = least + step * 1000
    memory = DeviceCapacity(Fraction(most), Fraction(most), Fraction(least), Fraction(most), Fraction(step))
    found = consumed({"memory": memory}, {"memory": Fraction(asked)})
    if asked > most:
        assert found is None
    else:
        assert found is not None
        taken = found["memory"]
        assert asked <= taken < max(asked + step, least + 1)
        assert (taken - least) % step == 0


def test_amounts_are_rounded_up_to_the_next_valid_value() -> None:
    sizes = DeviceCapacity(Fraction(8), Fraction(2), values=(Fraction(2), Fraction(4), Fraction(8)))
    assert [consumed({"m": sizes}, {"m": Fraction(asked)}) for asked in (1, 3, 8, 9)] == [
        {"m": 2},
        {"m": 4},
        {"m": 8},
        None,
    ]


def test_partitions_and_the_whole_gpu_exclude_each_other() -> None:
    whole, pair, single = (request("r", cls, *selectors) for cls, *selectors in (
        ("gpu.nvidia.com",),
        ("mig.nvidia.com", "device.attributes['gpu.nvidia.com'].profile == '2g'"),
        ("mig.nvidia.com", "device.attributes['gpu.nvidia.com'].profile == '1g'"),
    ))  # fmt: skip
    cluster = AllocatedDevices(partitioned())
    assert cluster.devices(claim("a", pair)) == ["mig-01"]
    assert cluster.devices(claim("b", whole)) is None
    assert cluster.devices(claim("c", single), claim("d", single)) == ["mig-2", "mig-3"]
    assert cluster.devices(claim("e", single)) is None
    cluster.free("a")
    assert cluster.devices(claim("e", pair)) == ["mig-01"]
    for name in "cde":
        cluster.free(name)
    assert cluster.devices(claim("f", whole)) == ["gpu-0"]
    assert cluster.devices(claim("g", single)) is None


def test_shares_of_a_gpu_take_its_counters_once() -> None:
    cluster = AllocatedDevices(partitioned(shareable=True))
    part = request(capacity=capacity(memory="10Gi"))
    assert cluster.devices(claim("a", part), claim("b", part)) == ["gpu-0", "gpu-0"]
    assert cluster.devices(claim("c", request("m", "mig.nvidia.com"))) is None
    cluster.free("a")
    assert cluster.devices(claim("c", request("m", "mig.nvidia.com"))) is None
    cluster.free("b")
    assert cluster.devices(claim("c", request("m", "mig.nvidia.com"))) == ["mig-01"]
    assert cluster.devices(claim("d", part)) is None


def test_devices_that_are_ruled_out_after_their_counters_were_taken_keep_them() -> None:
    """As in Kubernetes 1.36: for the rest of the search, not for the next one."""
    taint = {"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}
    found = partitioned(taints=[taint])
    classes = [{"metadata": {"name": "any"}, "spec": {}}, *CLASSES]
    assert AllocatedDevices(found, classes).devices(claim("a", request("r", "any"))) is None
    assert AllocatedDevices(found, classes).devices(claim("b", request("r", "mig.nvidia.com"))) == ["mig-01"]
    same = [{"requests": [], "matchAttribute": "gpu.nvidia.com/profile"}]
    assert AllocatedDevices(partitioned(), classes).devices(claim("c", request("r", "any"), constraints=same)) is None


def test_all_devices_must_satisfy_the_constraints() -> None:
    same = [{"requests": [], "matchAttribute": "gpu.nvidia.com/uuid"}]
    alternatives = [
        {"name": "all", "deviceClassName": "gpu.nvidia.com", "allocationMode": "All"},
        {"name": "one", "deviceClassName": "gpu.nvidia.com"},
    ]
    with pytest.raises(AllocationError, match="a claim constraint would not be satisfied"):
        AllocatedDevices(GPUS).devices(claim("a", {"name": "r", "firstAvailable": alternatives}, constraints=same))


def test_equal_and_different_attributes() -> None:
    parts = [mig(f"mig-{parent}-{at}", f"gpu-{parent}", at) for at in range(2) for parent in range(2)]
    found = slices(*parts, sets=[counter_set("gpu-0"), counter_set("gpu-1")])
    requests = [request("x", "mig.nvidia.com"), request("y", "mig.nvidia.com")]
    parent = "gpu.nvidia.com/parentUUID"
    assert AllocatedDevices(found).devices(claim("a", *requests)) == ["mig-0-0", "mig-1-0"]
    same = [{"requests": [], "matchAttribute": parent}]
    assert AllocatedDevices(found).devices(claim("a", *requests, constraints=same)) == ["mig-0-0", "mig-0-1"]
    distinct = [{"requests": ["x", "y"], "distinctAttribute": parent}]
    assert AllocatedDevices(found).devices(claim("a", *requests, constraints=distinct)) == ["mig-0-0", "mig-1-0"]
    three = [*requests, request("z", "mig.nvidia.com")]
    assert AllocatedDevices(found).devices(claim("a", *three, constraints=same)) is None
    only = [{"requests": ["x"], "matchAttribute": parent}]
    assert AllocatedDevices(found).devices(claim("a", *three, constraints=only)) == ["mig-0-0", "mig-1-0", "mig-0-1"]
    unknown = [{"requests": [], "matchAttribute": "gpu.nvidia.com/color"}]
    assert AllocatedDevices(found).devices(claim("a", *requests, constraints=unknown)) is None


def test_taints_keep_devices_free_unless_tolerated() -> None:
    taint = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
    found = slices(gpu("gpu-0", taints=[taint]), gpu("gpu-1"))
    assert AllocatedDevices(found).devices(claim("a", request())) == ["gpu-1"]
    tolerations = [{"key": "gpu.nvidia.com/xid", "operator": "Exists"}]
    [result] = AllocatedDevices(found).allocate(claim("a", request(tolerations=tolerations))) or []
    assert (result["device"], result["tolerations"]) == ("gpu-0", tolerations)
    harmless = slices(gpu("gpu-0", taints=[{**taint, "effect": "None"}]))
    assert AllocatedDevices(harmless).devices(claim("a", request())) == ["gpu-0"]


def test_admin_access_shares_devices_in_use_and_takes_nothing() -> None:
    cluster = AllocatedDevices(GPUS)
    cluster.allocate(claim("a", request(allocationMode="All")))
    admin = request(allocationMode="All", adminAccess=True)
    found = cluster.allocate(claim("b", admin)) or []
    assert [(result["device"], result["adminAccess"]) for result in found] == [("gpu-0", True), ("gpu-1", True)]
    cluster.free("a")
    assert cluster.devices(claim("c", request(count=2))) == ["gpu-0", "gpu-1"]


def test_the_first_available_alternative_is_chosen() -> None:
    def alternatives() -> Object:
        def wanted(name: str, cls: str, **more: Any) -> Object:
            return {"name": name, "deviceClassName": cls, **more}

        share = wanted("share", "gpu.nvidia.com", capacity=capacity(memory="10Gi"))
        return {"name": "any", "firstAvailable": [wanted("mig", "mig.nvidia.com"), share]}

    cluster = AllocatedDevices(SHARED)
    found = cluster.allocate(claim("a", alternatives())) or []
    assert (found[0]["request"], found[0]["device"]) == ("any/share", "gpu-0")
    cluster = AllocatedDevices(partitioned(shareable=True))
    assert [result["request"] for result in cluster.allocate(claim("a", alternatives())) or ()] == ["any/mig"]


def test_configuration_of_class_and_claim_is_in_the_result() -> None:
    def config(interval: str, **more: Any) -> Object:
        return {"opaque": {"driver": "gpu.nvidia.com", "parameters": {"interval": interval}}, **more}

    classes = [device_class("gpu.nvidia.com", "gpu", config=[config("Short")])]
    cluster = AllocatedDevices(GPUS, classes)
    wanted = [config("Long", requests=["gpu"]), config("Medium", requests=["other"]), config("Default")]
    cluster.allocate(claim("a", request(), config=wanted))
    found = cluster.allocated[0]["status"]["allocation"]["devices"]["config"]
    assert [(entry["source"], entry.get("requests"), entry["opaque"]["parameters"]["interval"]) for entry in found] == [
        ("FromClass", ["gpu"], "Short"),
        ("FromClaim", ["gpu"], "Long"),
        ("FromClaim", None, "Default"),
    ]


def test_nothing_is_allocated_from_an_incomplete_pool() -> None:
    found = slices(gpu("gpu-0"))
    found[0]["spec"]["pool"]["resourceSliceCount"] = 2
    assert AllocatedDevices(found).devices(claim("a", request())) is None
    with pytest.raises(
        AllocationError, match=r"asks for all devices, but pool gpu\.nvidia\.com/node-0 has 1 of 2 slices"
    ):
        AllocatedDevices(found).devices(claim("a", request(allocationMode="All")))


def test_slices_of_an_older_generation_are_ignored() -> None:
    old, new = slices(gpu("gpu-0"), gpu("gpu-1")), slices(gpu("gpu-7"), generation=2)
    new[0]["metadata"]["name"] = "node-0-c"
    for order in ([*old, *new], [*new, *old]):
        assert AllocatedDevices(order).devices(claim("a", request())) == ["gpu-7"]


@pytest.mark.parametrize(
    "devices",
    [
        [gpu("gpu-0"), gpu("gpu-0")],
        [gpu("gpu-0", counters=True), mig("m", "gpu-9", 0)],
        [gpu("gpu-0"), {**mig("m", "gpu-0", 0), "consumesCounters": [uses("gpu-0-counter-set", 9)]}],
    ],
)
def test_nothing_is_allocated_from_a_pool_that_contradicts_itself(devices: list[Object]) -> None:
    assert AllocatedDevices(slices(*devices, sets=[counter_set("gpu-0")])).devices(claim("a", request())) is None


def test_pools_with_binding_conditions_are_tried_last() -> None:
    waiting = gpu("gpu-0", bindingConditions=["lamina.dev/Prepared"], bindingFailureConditions=["lamina.dev/Failed"])
    first = slices(waiting, pool="node-0")
    second = slices(gpu("gpu-5"), pool="zz")
    second[0]["spec"]["nodeName"] = "node-0"
    cluster = AllocatedDevices([*first, *second])
    assert cluster.devices(claim("a", request())) == ["gpu-5"]
    [result] = cluster.allocate(claim("b", request())) or []
    assert (result["device"], result["bindingConditions"]) == ("gpu-0", ["lamina.dev/Prepared"])


def test_devices_for_nodes_with_a_label() -> None:
    found = slices(gpu("gpu-0"))
    del found[0]["spec"]["nodeName"]
    rule = {"key": "zone", "operator": "In", "values": ["a"]}
    found[0]["spec"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    allocator = Allocator(found, CLASSES, [], lambda: "s")
    assert allocator.allocate(node("n", zone="b"), [claim("a", request())]) is None
    [allocation] = allocator.allocate(node("n", zone="a"), [claim("a", request())]) or []
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(0, 110), st.booleans()), max_size=14))
def test_no_sequence_of_claims_exceeds_a_capacity(steps: list[tuple[int, int, bool]]) -> None:
    cluster = AllocatedDevices(SHARED)
    for number, (gib, cores, free) in enumerate(steps):
        wanted = request(capacity=capacity(memory=f"{gib}Gi", cores=str(cores)))
        cluster.allocate(claim(f"c{number}", wanted))
        if free and cluster.allocated:
            cluster.free(cluster.allocated[0]["metadata"]["name"])
        used: dict[str, list[int]] = {}
        for held in cluster.allocated:
            [result] = held["status"]["allocation"]["devices"]["results"]
            taken = result["consumedCapacity"]
            sums = used.setdefault(result["device"], [0, 0])
            sums[0] += int(taken["memory"].removesuffix("Gi"))
            sums[1] += int(taken["cores"])
        assert all(memory <= 80 and compute <= 100 for memory, compute in used.values())


def test_rules_taint_devices_as_slices_do() -> None:
    taint = {"key": "sick", "effect": "NoSchedule"}
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"device": "gpu-0"}, "taint": taint}}
    found = slices(gpu("gpu-0"), gpu("gpu-1"))

    def devices(wanted: Object, *rules: Object) -> list[str] | None:
        allocated = Allocator(found, CLASSES, [], lambda: "s", rules).allocate(node(), [wanted])
        return allocated and [result["device"] for result in allocated[0]["devices"]["results"]]

    assert devices(claim("a", request())) == ["gpu-0"]
    assert devices(claim("a", request()), rule) == ["gpu-1"]
    assert devices(claim("a", request(count=2)), rule) is None
    tolerates = request(tolerations=[{"key": "sick", "operator": "Exists"}])
    assert devices(claim("a", tolerates), rule) == ["gpu-0"]
    harmless = {**rule, "spec": {**rule["spec"], "taint": {**taint, "effect": "None"}}}
    assert devices(claim("a", request()), harmless) == ["gpu-0"]
