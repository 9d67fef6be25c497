"""What is said of claims before they are allocated never contradicts how Kubernetes allocates them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.dra.claim_fit import ClaimFit, fit_claims
from lamina.dra.device_room import ClaimRoom, rooms
from lamina.dra.selectors import selects_all
from lamina.dra.wanted_devices import by_class, wanted_claim
from lamina.errors import BadInput
from lamina.ports.kube import Object
from lamina_lab.scheduler.devices.search import AllocationError
from tests.lab_scheduler.device_objects import (
    CLASSES,
    DRIVER,
    AllocatedDevices,
    claim,
    counter_set,
    gpu,
    mig,
    request,
    slices,
)

CLASS_SELECTORS = {
    each["metadata"]["name"]: tuple(part["cel"]["expression"] for part in each["spec"]["selectors"]) for each in CLASSES
}
SHARED = slices(gpu("gpu-0", memory_gib=8, shareable=True), gpu("gpu-1", memory_gib=4, shareable=True))
PARTS = [
    *(mig(f"gpu-0-mig-{at}", "gpu-0", at) for at in range(2)),
    mig("gpu-0-mig-big", "gpu-0", 0, 1, 2, 3),
    gpu("gpu-0", memory_gib=8, shareable=True, counters=True),
    gpu("gpu-1", memory_gib=4, shareable=True),
]
PARTITIONED = slices(*PARTS, sets=[counter_set("gpu-0")])


def shares(name: str = "gpu", *selectors: str, memory: str = "", cores: str = "", **more: Any) -> Object:
    amounts = {key: value for key, value in (("memory", memory), ("cores", cores)) if value}
    return request(
        name, "gpu.nvidia.com", *selectors, **({"capacity": {"requests": amounts}} if amounts else {}), **more
    )


def asked(cluster: AllocatedDevices, *claims: Object) -> ClaimFit:
    room = rooms(cluster.slices, cluster.allocated).get("node-0", ClaimRoom("node-0"))
    return fit_claims([wanted_claim(each["spec"]) for each in claims], room, CLASS_SELECTORS)


SELECTORS = (
    f"device.attributes['{DRIVER}'].uuid == 'GPU-gpu-1'",
    f'device.driver == "{DRIVER}"',
    f"device.attributes['{DRIVER}'].index == 0",
    f"device.attributes['{DRIVER}'].uuid.startsWith('GPU')",
    f"'uuid' in device.attributes['{DRIVER}']",
)
requests = st.builds(
    lambda name, memory, cores, count, kind, chosen: request(
        name,
        kind,
        *([SELECTORS[chosen]] if chosen is not None and kind == "gpu.nvidia.com" else []),
        **(
            {"capacity": {"requests": {"memory": memory} | ({"cores": cores} if cores else {})}}
            if memory and kind == "gpu.nvidia.com"
            else {}
        ),
        **count,
    ),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "1Gi", "3Gi", "4Gi", "8Gi", "9Gi", "1500M"]),
    st.sampled_from(["", "30", "70", "100"]),
    st.sampled_from([{}, {"allocationMode": "ExactCount", "count": 2}, {"allocationMode": "All"}]),
    st.sampled_from(["gpu.nvidia.com", "gpu.nvidia.com", "mig.nvidia.com"]),
    st.none() | st.integers(0, len(SELECTORS) - 1),
)


def named(parts: list[Object], constraint: str, number: int) -> Object:
    listed = [{**each, "name": f"r{at}"} for at, each in enumerate(parts)]
    more = {"constraints": [{constraint: f"{DRIVER}/uuid"}]} if constraint else {}
    return claim(f"c{number}", *listed, **more)


wanted = st.lists(
    st.tuples(st.lists(requests, min_size=1, max_size=3), st.sampled_from(["", "matchAttribute", "distinctAttribute"])),
    min_size=1,
    max_size=4,
)


@given(wanted, st.sampled_from([SHARED, PARTITIONED]))
def test_what_is_certain_is_what_kubernetes_allocates(parts: list[Any], offered: list[Object]) -> None:
    cluster = AllocatedDevices(offered)
    for number, (listed, constraint) in enumerate(parts):
        # With counters, Kubernetes 1.36 keeps those of devices that a constraint excludes.
        made = named(listed, "" if offered is PARTITIONED else constraint, number)
        said = asked(cluster, made)
        try:
            devices = cluster.devices(made)
        except AllocationError:
            assert said.lacks or not said.certain
            continue
        if said.certain:
            assert (said.lacks == "") is (devices is not None), said
        if said.certain and devices is not None:
            assert sorted(said.devices) == sorted(devices)


@pytest.mark.parametrize(
    ("wanted", "lacks", "lasting"),
    [
        (shares(memory="60Gi"), "request gpu needs 61440 MiB; the largest device has 8192 MiB", True),
        (shares(memory="6Gi"), "request gpu needs 6144 MiB; the best device has 4096 MiB free", False),
        (shares(memory="1Gi", cores="80"), "request gpu needs 80 % of a device's time; the most free is 70 %", False),
        (shares(memory="4Gi", cores="80"), "request gpu needs 80 % of a device's time; the most free is 70 %", False),
        (shares(), "request gpu needs a whole device; none of 2 is free", False),
        (shares(allocationMode="All"), "request gpu needs all 2 devices of this node; 0 have room", False),
        (
            request("gpu", "mig.nvidia.com"),
            "request gpu: no device here is of DeviceClass mig.nvidia.com",
            True,
        ),
        (
            shares("gpu", f"device.attributes['{DRIVER}'].uuid == 'x'"),
            "request gpu: its selectors select none of 2 devices of DeviceClass gpu.nvidia.com",
            True,
        ),
        (
            shares(count=3),
            "request gpu needs 3 devices of DeviceClass gpu.nvidia.com; this node offers 2",
            True,
        ),
        (shares(memory="4Gi", count=2), "request gpu needs 2 devices; there is room for 1", False),
        (shares(memory="1Gi"), "", False),
    ],
)
def test_what_a_node_lacks_is_said_in_numbers(wanted: Object, lacks: str, lasting: bool) -> None:
    cluster = AllocatedDevices(SHARED)
    assert cluster.devices(claim("x", shares(memory="4Gi", cores="30"))) == ["gpu-0"]
    assert cluster.devices(claim("y", shares("gpu", SELECTORS[0], memory="1Mi", cores="50"))) == ["gpu-1"]
    said = asked(cluster, claim("z", wanted))
    assert (said.lacks, said.lasting, said.certain) == (lacks, lasting, True)


def test_requests_that_fit_alone_only_say_so() -> None:
    made = claim("a", shares("r1", memory="8Gi"), shares("r2", memory="8Gi"))
    assert asked(AllocatedDevices(SHARED), made).lacks.startswith("its requests do not fit together")


def test_only_what_its_selectors_select_is_a_place_for_a_request() -> None:
    chosen = shares("gpu", SELECTORS[0], memory="1Gi")
    said = asked(AllocatedDevices(SHARED), claim("a", chosen))
    assert (said.devices, said.lacks, said.certain) == (("gpu-1",), "", True)
    all_of_them = shares("gpu", SELECTORS[0], allocationMode="All")
    assert asked(AllocatedDevices(SHARED), claim("a", all_of_them)).devices == ("gpu-1",)


def test_amounts_may_be_zero_but_not_less() -> None:
    assert asked(AllocatedDevices(SHARED), claim("a", shares(memory="0", cores="0"))).devices == ("gpu-0",)
    with pytest.raises(BadInput, match="request gpu: cores must not be negative, got '-1'"):
        wanted_claim(claim("a", shares(memory="1Gi", cores="-1"))["spec"])


def test_taints_of_slices_and_rules_keep_claims_out() -> None:
    tainted = slices(gpu("gpu-0", taints=[{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}]))
    want = [wanted_claim(claim("a", request())["spec"])]
    said = fit_claims(want, rooms(tainted, [])["node-0"], CLASS_SELECTORS)
    assert said.lacks == (
        "request gpu: all of 1 device of DeviceClass gpu.nvidia.com have the taint gpu.nvidia.com/xid"
    )
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"pool": "node-0"}, "taint": {"key": "k"}}}
    for effect, kept in (("NoExecute", True), ("None", False)):
        rule["spec"]["taint"]["effect"] = effect
        said = fit_claims(want, rooms(slices(gpu("gpu-0")), [], [rule])["node-0"], CLASS_SELECTORS)
        assert bool(said.lacks) is kept


def test_what_is_not_read_is_not_certain() -> None:
    tolerating = request("gpu", "gpu.nvidia.com", tolerations=[{"operator": "Exists"}])
    for each in (tolerating, shares("gpu", "device.capacity['x'].y == quantity('1')")):
        said = asked(AllocatedDevices(SHARED), claim("a", each))
        assert (said.lacks, said.certain) == ("", False)


def test_a_class_by_an_extended_resource() -> None:
    room = rooms(SHARED, [])["node-0"]
    assert fit_claims([by_class("main", "gpu.nvidia.com", 2)], room, CLASS_SELECTORS).devices == ("gpu-0", "gpu-1")


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        ("device.driver == 'a'", True),
        ("device.driver=='b'", False),
        ("device.driver == 'a' && device.attributes['a'].kind == 'gpu'", True),
        ("device.driver == 'a' && device.attributes['a'].kind == 'mig'", False),
        ("device.attributes['b'].kind == 'gpu'", False),
        ("device.attributes['a'].number == 3", True),
        ("device.attributes['a'].number == '3'", False),
        ("device.attributes['a'].on == true", True),
        ("device.attributes['b.c'].far == 'x'", True),
        ("'kind' in device.attributes['a']", True),
        ("'none' in device.attributes['a']", False),
        ("'kind' in device.attributes['b']", False),
        ("'far' in device.attributes['b.c']", True),
        ("'kind' in device.attributes[\"a\"]", True),
        ("\"kind\" in device.attributes['a']", True),
        ("'b.c' in device.attributes", True),
        ("'a' in device.attributes", True),
        ("'b' in device.attributes", False),
        ("!(device.driver == 'b')", None),
        ("device.driver == 'b' || device.driver == 'a'", None),
        ("device.driver == 'b' && device.attributes['a'].kind.startsWith('g')", None),
        ("device.driver == 'b' ? true : false", None),
        ("true", None),
        ("", None),
    ],
)
def test_expressions_are_read_or_not_known(expression: str, selected: bool | None) -> None:
    attributes = {"kind": {"string": "gpu"}, "number": {"int": 3}, "on": {"bool": True}, "b.c/far": {"string": "x"}}
    assert selects_all([expression], "a", attributes) is selected
