"""NVIDIA's opaque parameters and the amounts of an allocation: a valid space, and the invalid one next to it."""

from typing import Any

import pytest

from lamina.dra.claims import read_claim
from lamina.dra.names import DRIVER, cdi_name
from lamina.dra.parameters import check_parameters
from lamina.errors import BadInput

REQUESTS = {"whole": "gpu", "either/small": "mig"}


def config(parameters: Any, *requests: str, source: str = "FromClaim", driver: str = DRIVER) -> dict[str, Any]:
    return {"source": source, "requests": list(requests), "opaque": {"driver": driver, "parameters": parameters}}


def gpu(**sharing: Any) -> dict[str, Any]:
    document: dict[str, Any] = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    return document | ({"sharing": sharing} if sharing else {})


def mig(**sharing: Any) -> dict[str, Any]:
    return gpu(**sharing) | {"kind": "MigDeviceConfig"}


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [config(gpu())],
        [config(gpu(strategy="TimeSlicing"), "whole")],
        [config(gpu(strategy="TimeSlicing", timeSlicingConfig={"interval": "Default"}))],
        [config(mig(strategy="TimeSlicing"), "either")],
        [config(mig(), "either/small")],
        [config({"any": "thing"}, driver="other.example.com")],
        # the last one applies: the claim's after the class's, whatever their order
        [config(gpu(), "whole"), config(gpu(strategy="MPS"), source="FromClass")],
    ],
)
def test_what_is_possible(entries: list[dict[str, Any]]) -> None:
    check_parameters(entries, DRIVER, REQUESTS)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (config(gpu(strategy="MPS")), "request whole: GpuConfig: Lamina shares no device of a claim by MPS"),
        (config(gpu(strategy="MPS"), source="FromClass"), "by MPS"),
        (config(gpu(strategy="mps")), "sharing.strategy must be TimeSlicing or MPS, got 'mps'"),
        (config(gpu(strategy="TimeSlicing", mpsConfig={})), "mpsConfig cannot be combined"),
        (config(gpu(strategy="TimeSlicing", timeSlicingConfig={"interval": "Long"})), "the interval Long would apply"),
        (
            config(gpu(strategy="TimeSlicing", timeSlicingConfig={"interval": "long"})),
            "interval must be one of Default",
        ),
        (
            config(gpu(strategy="TimeSlicing", timeSlicingConfig={"time": 1})),
            "unknown field 'time'; known are interval",
        ),
        (config(mig(strategy="TimeSlicing", timeSlicingConfig={}), "either"), "unknown field 'timeSlicingConfig'"),
        (config(gpu() | {"limits": 1}), "unknown field 'limits'"),
        (config(gpu(), "either"), "its device is of type mig, which GpuConfig cannot configure; use MigDeviceConfig"),
        (config(gpu() | {"kind": "VfioDeviceConfig"}), "got 'VfioDeviceConfig'"),
        (config(gpu() | {"apiVersion": "v1"}), "of 'v1'"),
        (config("text"), "must be an object with apiVersion and kind"),
        (config(gpu() | {"sharing": []}), "sharing must be an object, got"),
    ],
)
def test_what_is_refused(entry: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match="(?s)" + sentence.replace("(", r"\(")):
        check_parameters([entry], DRIVER, REQUESTS)


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
