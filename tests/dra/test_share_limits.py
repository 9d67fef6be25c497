"""Limits above what a claim is guaranteed: a valid space, and the invalid one next to it."""

import re
from typing import Any

import pytest
from msgspec import structs

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy, Share
from lamina.dra.names import DRIVER
from lamina.dra.offers import OfferedDevice
from lamina.dra.parameters import SharingParameters, sharing_by_request
from lamina.dra.share_limits import ShareLimits, limits_by_request, with_limits
from lamina.dra.shares import RequestShares, together
from lamina.errors import BadInput

REQUESTS = ("gpu", "either/small")


def config(parameters: Any, *requests: str, source: str = "FromClaim", driver: str = DRIVER) -> dict[str, Any]:
    return {"source": source, "requests": list(requests), "opaque": {"driver": driver, "parameters": parameters}}


def limited(**limits: Any) -> dict[str, Any]:
    return {"apiVersion": "lamina.dev/v1alpha1", "kind": "ShareConfig", "limits": limits}


def found(*entries: dict[str, Any]) -> dict[str, ShareLimits]:
    return limits_by_request(entries, DRIVER, REQUESTS)


BOTH = ShareLimits(memory_mib=16384, cores=60)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], {}),
        ([config(limited(memory="16Gi", cores=60))], {"gpu": BOTH, "either": BOTH}),
        ([config(limited(memory="16Gi", cores=60), "gpu")], {"gpu": BOTH}),
        ([config(limited(memory="16Gi", cores=60), "either")], {"either": BOTH}),
        ([config(limited(memory="16Gi", cores=60), "either/small")], {"either": BOTH}),
        ([config(limited(), "gpu")], {"gpu": ShareLimits()}),
        ([config(limited(memory="1.5Mi"), "gpu")], {"gpu": ShareLimits(memory_mib=1)}),
        ([config(limited(cores=1), "gpu")], {"gpu": ShareLimits(cores=1)}),
        ([config(limited() | {"latencyClass": True}, "gpu")], {"gpu": ShareLimits(first=True)}),
        (
            [config(limited(cores=60, memory="16Gi"), "gpu"), config(limited(cores=1), "gpu", source="FromClass")],
            {"gpu": BOTH},
        ),
        ([config(limited(cores=1), "gpu", driver="other.example.com")], {}),
        ([config({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}, "gpu")], {}),
    ],
)
def test_limits_by_request(entries: list[dict[str, Any]], expected: dict[str, ShareLimits]) -> None:
    assert found(*entries) == expected


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            limited() | {"limit": {}},
            "ShareConfig: unknown field 'limit'; known are apiVersion, kind, limits, latencyClass",
        ),
        (limited(memry="1Gi"), "ShareConfig: limits: unknown field 'memry'; known are memory, cores"),
        (limited() | {"limits": ["1Gi"]}, "ShareConfig: limits must be an object, got ['1Gi']"),
        (limited(cores=0), "ShareConfig: limits.cores must be a number from 1 to 100, got 0"),
        (limited(cores=101), "ShareConfig: limits.cores must be a number from 1 to 100, got 101"),
        (limited(cores="60"), "ShareConfig: limits.cores must be a number from 1 to 100, got '60'"),
        (limited(cores=True), "ShareConfig: limits.cores must be a number from 1 to 100, got True"),
        (limited() | {"latencyClass": "true"}, "ShareConfig: latencyClass must be true or false, got 'true'"),
        (limited(memory="1Ki"), "ShareConfig: limits.memory must be at least 1Mi, got '1Ki'"),
        (limited(memory="much"), "ShareConfig: limits.memory"),
    ],
)
def test_what_is_wrong_is_refused(parameters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        found(config(parameters, "gpu"))


def test_nvidias_parameters_and_these_apply_together() -> None:
    turns = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing"}}
    entries = [config(limited(cores=60), "gpu"), config(turns, "gpu")]
    assert sharing_by_request(entries, DRIVER, {"gpu": "gpu"}) == {"gpu": SharingParameters()}
    assert found(*entries) == {"gpu": ShareLimits(cores=60)}
    with pytest.raises(BadInput, match=r"must be GpuConfig or MigDeviceConfig of .*, or ShareConfig of lamina\.dev"):
        sharing_by_request([config({"apiVersion": "v1", "kind": "Pod"})], DRIVER, {"gpu": "gpu"})


def share(memory: int = 4096, cores: int = 30, **more: Any) -> Share:
    policy = ComputePolicy.CAP if cores else ComputePolicy.NONE
    return Share(gpu="GPU-0", memory_mib=memory, cores=cores, **{"compute_policy": policy, **more})


def test_the_latency_class_changes_no_amount() -> None:
    device = OfferedDevice(name="gpu-0", kind="gpu", uuid="GPU-0", gpu="GPU-0", index=0, memory_mib=40960, document={})
    guaranteed = RequestShares(shares=(share(),), limited=True)
    found = with_limits("gpu", ShareLimits(first=True), guaranteed, [device])
    assert found == structs.replace(guaranteed, first=True)


def applied(limits: ShareLimits, of: Share) -> Share:
    device = OfferedDevice(name="gpu-0", kind="gpu", uuid="GPU-0", gpu="GPU-0", index=0, memory_mib=40960, document={})
    [one] = with_limits("gpu", limits, RequestShares(shares=(of,), limited=True), [device]).shares
    return one


def test_a_share_borrows_up_to_its_limits() -> None:
    one = applied(BOTH, share())
    assert (one.memory_mib, one.limit_mib, one.cores, one.most_cores) == (4096, 16384, 30, 60)
    assert one.compute_policy is ComputePolicy.WEIGHT


def test_limits_that_are_the_requests_lend_nothing() -> None:
    assert applied(ShareLimits(memory_mib=4096, cores=30), share()) == share()
    assert applied(ShareLimits(memory_mib=8192), share()).compute_policy is ComputePolicy.CAP
    assert applied(ShareLimits(), share()) == share()


def test_a_limit_beyond_the_gpu_is_all_of_it() -> None:
    assert applied(ShareLimits(memory_mib=99999), share()).limit_mib == 40960


@pytest.mark.parametrize(
    ("limits", "of", "sentence"),
    [
        (ShareLimits(memory_mib=4095), share(), "the limit of memory must be at least its request, 4096 MiB"),
        (ShareLimits(cores=29), share(), "the limit of cores must be at least its request, 30"),
        (ShareLimits(cores=60), share(cores=0), "a limit of cores requires a request of cores; add one"),
        (BOTH, share(mode=Mode.WHOLE), "ShareConfig is for shares of a GPU; request memory, or remove the limits"),
        (BOTH, share(mode=Mode.MIG), "ShareConfig is for shares of a GPU; request memory, or remove the limits"),
    ],
)
def test_limits_that_a_share_cannot_have(limits: ShareLimits, of: Share, sentence: str) -> None:
    with pytest.raises(BadInput, match=f"^request gpu: {re.escape(sentence)}$"):
        applied(limits, of)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (share(), share(1000, 10), (5096, 5096, 40, 0, ComputePolicy.CAP)),
        (applied(BOTH, share()), share(1000, 10), (5096, 17384, 40, 70, ComputePolicy.WEIGHT)),
        (applied(BOTH, share()), applied(BOTH, share()), (8192, 32768, 60, 100, ComputePolicy.WEIGHT)),
        (applied(BOTH, share()), share(1000, 0), (5096, 17384, 0, 0, ComputePolicy.NONE)),
    ],
)
def test_shares_in_one_account_add_up(one: Share, other: Share, expected: tuple[object, ...]) -> None:
    [both] = together([one, other])
    assert (both.memory_mib, both.limit_mib, both.cores, both.most_cores, both.compute_policy) == expected
    [turned] = together([other, one])
    assert turned == both
