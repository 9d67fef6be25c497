"""NVIDIA's opaque parameters and the amounts of an allocation: a valid space, and the invalid one next to it."""

import re
from typing import Any

import pytest

from lamina.core.sharing import TimeSlice
from lamina.dra.claims import read_claim
from lamina.dra.names import DRIVER, cdi_name
from lamina.dra.parameters import MpsParameters, SharingParameters, sharing_by_request
from lamina.errors import BadInput

REQUESTS = {"whole": "gpu", "either/small": "mig"}


def config(parameters: Any, *requests: str, source: str = "FromClaim", driver: str = DRIVER) -> dict[str, Any]:
    return {"source": source, "requests": list(requests), "opaque": {"driver": driver, "parameters": parameters}}


def gpu(**sharing: Any) -> dict[str, Any]:
    document: dict[str, Any] = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    return document | ({"sharing": sharing} if sharing else {})


def mig(**sharing: Any) -> dict[str, Any]:
    return gpu(**sharing) | {"kind": "MigDeviceConfig"}


def mps(**config: Any) -> dict[str, Any]:
    return gpu(strategy="MPS", mpsConfig=config)


def turns(interval: str) -> dict[str, Any]:
    return gpu(strategy="TimeSlicing", timeSlicingConfig={"interval": interval})


def found(*entries: dict[str, Any]) -> dict[str, SharingParameters]:
    return sharing_by_request(entries, DRIVER, REQUESTS)


USUAL = SharingParameters()
HALF = SharingParameters(mps=MpsParameters(threads_percent=50, memory_mib=10240))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], {}),
        ([config(gpu())], {"whole": USUAL}),
        ([config(gpu(strategy="TimeSlicing"), "whole")], {"whole": USUAL}),
        ([config(mig(strategy="TimeSlicing"), "either")], {"either": USUAL}),
        ([config(mig(), "either/small")], {"either": USUAL}),
        ([config({"any": "thing"}, driver="other.example.com")], {}),
        ([config(gpu(strategy="MPS"))], {"whole": SharingParameters(mps=MpsParameters())}),
        ([config(mps())], {"whole": SharingParameters(mps=MpsParameters())}),
        (
            [config(mps(defaultActiveThreadPercentage=50, defaultPinnedDeviceMemoryLimit="10Gi", multiUser=False))],
            {"whole": HALF},
        ),
        (
            [config(mps(defaultPerDevicePinnedMemoryLimit={"0": "1Gi", "GPU-1": "1.5Mi"}))],
            {"whole": SharingParameters(mps=MpsParameters(by_device={"0": 1024, "GPU-1": 1}))},
        ),
        (
            [config(mig(strategy="MPS", mpsConfig={"defaultActiveThreadPercentage": 1}), "either")],
            {"either": SharingParameters(mps=MpsParameters(threads_percent=1))},
        ),
        # the last one applies: the claim's after the class's, whatever their order
        ([config(gpu(), "whole"), config(gpu(strategy="MPS"), source="FromClass")], {"whole": USUAL}),
        ([config(turns("Long")), config(turns("Short"))], {"whole": SharingParameters(interval=TimeSlice.SHORT)}),
    ],
)
def test_what_is_possible(entries: list[dict[str, Any]], expected: dict[str, SharingParameters]) -> None:
    assert found(*entries) == expected


@pytest.mark.parametrize("interval", ["Default", "Short", "Medium", "Long"])
def test_intervals_have_nvidias_numbers(interval: str) -> None:
    length = found(config(turns(interval)))["whole"].interval
    assert length.number == ["Default", "Short", "Medium", "Long"].index(interval)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (config(gpu(strategy="mps")), "sharing.strategy must be TimeSlicing or MPS, got 'mps'"),
        (
            config(gpu(strategy="TimeSlicing", mpsConfig={})),
            "mpsConfig cannot be combined",
        ),
        (
            config(gpu(strategy="MPS", timeSlicingConfig={})),
            "timeSlicingConfig cannot be combined",
        ),
        (config(turns("long")), "interval must be one of Default"),
        (
            config(gpu(strategy="TimeSlicing", timeSlicingConfig={"time": 1})),
            "unknown field 'time'; known are interval",
        ),
        (config(mig(strategy="TimeSlicing", timeSlicingConfig={}), "either"), "unknown field 'timeSlicingConfig'"),
        *(
            (config(mps(defaultActiveThreadPercentage=odd)), f"must be a number from 1 to 100, got {odd!r}")
            for odd in (0, 101, -1, "50", 1.5, True)
        ),
        (config(mps(defaultPinnedDeviceMemoryLimit="1M")), "must be at least 1Mi, got '1M'"),
        (config(mps(defaultPinnedDeviceMemoryLimit="-1Gi")), "must be at least 1Mi"),
        (config(mps(defaultPinnedDeviceMemoryLimit="much")), "must be a Kubernetes quantity"),
        (config(mps(defaultPerDevicePinnedMemoryLimit=["1Gi"])), "must be an object, got"),
        (config(mps(defaultPerDevicePinnedMemoryLimit={"0": None})), "defaultPerDevicePinnedMemoryLimit[0] must be a"),
        (config(mps(multiUser=True)), "multiUser must be false, got True"),
        (config(mps(threads=1)), "unknown field 'threads'; known are defaultActiveThreadPercentage"),
        (config(gpu(strategy="MPS", mpsConfig=1)), "mpsConfig must be an object, got 1"),
        (config(gpu() | {"limits": 1}), "unknown field 'limits'"),
        (config(gpu(), "either"), "its device is of type mig, which GpuConfig cannot configure; use MigDeviceConfig"),
        (config(gpu() | {"kind": "VfioDeviceConfig"}), "got 'VfioDeviceConfig'"),
        (config(gpu() | {"apiVersion": "v1"}), "of 'v1'"),
        (config("text"), "must be an object with apiVersion and kind"),
        (config(gpu() | {"sharing": []}), "sharing must be an object, got"),
    ],
)
def test_what_is_refused(entry: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match="(?s)" + re.escape(sentence)):
        found(entry)


def allocated(**result: Any) -> dict[str, Any]:
    one = {"request": "gpu", "driver": DRIVER, "pool": "node-0", "device": "gpu-0"} | result
    reserved = [{"resource": "pods", "name": "p", "uid": "u"}]
    status = {"allocation": {"devices": {"results": [one]}}, "reservedFor": reserved}
    return {"metadata": {"namespace": "default", "name": "c", "uid": "uid-c"}, "status": status}


def test_an_unshared_device_and_admin_access_have_no_amounts() -> None:
    found = read_claim(allocated(), DRIVER, "node-0")
    assert (found.devices[0].memory_mib, found.devices[0].admin, found.pods) == (None, False, ("p",))
    (admin,) = read_claim(allocated(adminAccess=True, consumedCapacity={"memory": "1Gi"}), DRIVER, "node-0").devices
    assert (admin.memory_mib, admin.admin) == (None, True)


def test_alternatives_belong_to_the_request_that_containers_name() -> None:
    assert list(read_claim(allocated(request="gpu/small"), DRIVER, "node-0").requests) == ["gpu"]


@pytest.mark.parametrize(
    ("amounts", "memory", "cores"),
    [
        ({"memory": "4Gi"}, 4096, 0),
        ({"memory": "1Mi", "cores": "1"}, 1, 1),
        ({"memory": str(4 * 2**30 + 1), "cores": "100"}, 4096, 100),
        ({"memory": "1M"}, 0, 0),
    ],
)
def test_amounts(amounts: dict[str, str], memory: int, cores: int) -> None:
    claim = allocated(consumedCapacity=amounts)
    if not memory:
        with pytest.raises(BadInput, match="must be at least 1Mi, got '1M'"):
            read_claim(claim, DRIVER, "node-0")
        return
    (found,) = read_claim(claim, DRIVER, "node-0").devices
    assert (found.memory_mib, found.cores) == (memory, cores)


@pytest.mark.parametrize("cores", ["101", "-1", "500m", "much"])
def test_cores_that_mean_nothing_are_refused(cores: str) -> None:
    with pytest.raises(BadInput, match=r"claim default/c: consumedCapacity\.cores must be"):
        read_claim(allocated(consumedCapacity={"memory": "1Gi", "cores": cores}), DRIVER, "node-0")


def test_the_cdi_name_of_a_request_is_always_the_same() -> None:
    assert cdi_name("uid-c", "gpu") == cdi_name("uid-c", "gpu")
    assert len({cdi_name("uid-c", "gpu"), cdi_name("uid-c", "other"), cdi_name("uid-d", "gpu")}) == 3
