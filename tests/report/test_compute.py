"""The words for a share of compute: what its percentage means."""

from typing import Any

import pytest

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy, ContainerGrant, Share
from lamina.report import compute
from lamina.report.shares import shares_of_survivor

WEIGHT, CAPPED, NONE, THREADS = ComputePolicy.WEIGHT, ComputePolicy.CAP, ComputePolicy.NONE, ComputePolicy.THREADS


def share(policy: ComputePolicy, cores: int = 10, **more: Any) -> Share:
    return Share(gpu="GPU-0", memory_mib=1000, cores=cores, compute_policy=policy, **more)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (share(WEIGHT), "10 %, lends"),
        (share(WEIGHT, most_cores=11), "10 %, lends up to 11 %"),
        (share(WEIGHT, most_cores=10), "10 %, cap"),
        (share(CAPPED), "10 %, cap"),
        (share(THREADS, mode=Mode.MPS), "10 %, cap"),
        (share(NONE, mode=Mode.MIG), "10 %, cap"),
        (share(NONE), "10 %, no limit"),
        (share(NONE, 100, exclusive=True), "whole"),
        (share(NONE, 0, exclusive=True), "whole"),
        (share(NONE, 0), "shared"),
        (share(WEIGHT, 0), "shared"),
        (share(NONE, 100, mode=Mode.WHOLE, exclusive=True), "whole"),
    ],
)
def test_a_share_is_shown_with_what_its_percentage_means(held: Share, words: str) -> None:
    [row] = shares_of_survivor([ContainerGrant(name="main", shares=(held,))], None)
    assert row.compute == words


@pytest.mark.parametrize(
    ("mode", "cores", "words"),
    [(Mode.MIG, 14, "14 %, cap"), (Mode.MPS, 10, "10 %, cap"), (Mode.TIMESLICE, 0, "shared"), (Mode.MPS, 0, "shared")],
)
def test_a_device_of_kubelet_has_part_of_the_processors_or_time_slices(mode: Mode, cores: int, words: str) -> None:
    assert compute.in_words(cores, compute.held_natively(mode, cores)) == words


def test_a_gpu_names_each_kind_once() -> None:
    assert compute.of_gpu(["lends", "", "lends up to 60 %", "cap"]) == "cap and lends"
    assert compute.of_gpu(["lends up to 60 %"]) == "lends"
    assert compute.of_gpu(["", ""]) == ""
