"""The functional test of 4paradigm's scheduler, as placement alone decides it: two V100 with 32768 MiB."""

import pytest

from lamina.configuration import Config, load
from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy
from lamina.placement import Cause
from tests.dialects.pods import asking
from tests.placement.nodes import gpus, replicas

POLICIES = [
    load(f"hami: {{gpuSchedulerPolicy: {gpu}, nodeSchedulerPolicy: {node}}}", "c")
    for gpu in ("binpack", "spread")
    for node in ("binpack", "spread")
]


@pytest.mark.parametrize("config", POLICIES)
def test_s4_1_memory_is_the_limit_6_run_and_4_wait(config: Config) -> None:
    running, waiting = replicas(asking(gpu=1, gpumem=10000, gpucores=10), 10, gpus(), config)
    assert (len(running), len(waiting)) == (6, 4)
    assert {misfit.reason for misfit in waiting} == {"needs 10000 MiB; the best GPU has 2768 MiB free"}
    shares = [share for placement in running for share in placement.containers[0].shares]
    assert sorted(share.gpu for share in shares) == ["GPU-0"] * 3 + ["GPU-1"] * 3
    assert {(share.memory_mib, share.cores, share.mode) for share in shares} == {(10000, 10, Mode.QUOTA)}


@pytest.mark.parametrize("config", POLICIES)
def test_s4_2_compute_is_the_limit_6_run_and_4_wait(config: Config) -> None:
    running, waiting = replicas(asking(gpu=1, gpumem=5000, gpucores=30), 10, gpus(), config)
    assert (len(running), len(waiting)) == (6, 4)
    assert {misfit.cause for misfit in waiting} == {Cause.CORES}
    assert waiting[0].reason == "needs 30 % of a GPU's time; the most free is 10 %"


@pytest.mark.parametrize("split", [1, 2, 10, 20])
def test_s4_3_no_more_tasks_on_a_gpu_than_the_split_count(split: int) -> None:
    running, waiting = replicas(asking(gpu=1, gpumem=100), 3 * split, gpus(slots=split))
    assert (len(running), len(waiting)) == (2 * split, split)
    on_first = sum(placement.containers[0].shares[0].gpu == "GPU-0" for placement in running)
    assert on_first == split
    assert waiting[0].reason == f"all {split} slots of each GPU are taken"


def test_s4_6_memory_scaling_3_lets_all_10_run() -> None:
    running, waiting = replicas(asking(gpu=1, gpumem=10000), 10, gpus(scaling=3))
    assert (len(running), len(waiting)) == (10, 0)
    assert all(placement.containers[0].oversubscribed for placement in running)
    assert {placement.containers[0].shares[0].memory_mib for placement in running} == {10000}


@pytest.mark.parametrize(("scaling", "run"), [(1, 4), (3, 5)])
def test_s4_10_five_tasks_of_16000_mib(scaling: int, run: int) -> None:
    running, waiting = replicas(asking(gpu=1, gpumem=16000), 5, gpus(scaling=scaling))
    assert (len(running), len(waiting)) == (run, 5 - run)
    assert all(misfit.reason == "needs 16000 MiB; the best GPU has 768 MiB free" for misfit in waiting)


def test_s4_9_the_seeds_default_memory_makes_six_tasks_of_a_count_alone() -> None:
    seed = load("scheduler: {defaultMem: 5000}\nresourceCores: nvidia.com/cores", "values.yaml")
    running, waiting = replicas(asking(gpu=1), 20, gpus(), seed)
    assert (len(running), len(waiting)) == (12, 8)
    assert running[0].containers[0].shares[0].memory_mib == 5000


def test_s4_9_default_cores_100_gives_each_task_a_gpu_of_its_own() -> None:
    seed = load("scheduler: {defaultCores: 100}", "values.yaml")
    running, waiting = replicas(asking(gpu=1, gpumem=1000), 3, gpus(), seed)
    assert (len(running), len(waiting)) == (2, 1)
    assert waiting[0].reason == "whole GPU needed; none of 2 is idle"


@pytest.mark.parametrize(("text", "policy"), [("true", ComputePolicy.NONE), ("false", ComputePolicy.WEIGHT)])
def test_s4_9_the_compute_limit_can_be_switched_off_but_still_counts(text: str, policy: ComputePolicy) -> None:
    config = load(f'devicePlugin: {{disablecorelimit: "{text}"}}', "values.yaml")
    running, waiting = replicas(asking(gpu=1, gpumem=5000, gpucores=30), 10, gpus(), config)
    assert (len(running), len(waiting)) == (6, 4)
    assert {placement.containers[0].shares[0].compute_policy for placement in running} == {policy}


def test_whole_gpus_by_count_alone() -> None:
    running, waiting = replicas(asking(gpu=1), 3, gpus())
    assert (len(running), len(waiting)) == (2, 1)
    share = running[0].containers[0].shares[0]
    assert (share.mode, share.memory_mib, share.exclusive) == (Mode.WHOLE, 32768, True)
    assert share.compute_policy is ComputePolicy.NONE


def test_a_percentage_is_of_the_capacity_and_rounded_down() -> None:
    running, waiting = replicas(asking(gpu=1, gpumem_percentage=33), 8, gpus())
    assert (len(running), len(waiting)) == (6, 2)
    assert running[0].containers[0].shares[0].memory_mib == 10813
    scaled, _ = replicas(asking(gpu=1, gpumem_percentage=33), 1, gpus(scaling=3))
    assert scaled[0].containers[0].shares[0].memory_mib == 32440
