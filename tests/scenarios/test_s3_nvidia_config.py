"""S3: the configuration of NVIDIA's device plugin on a node: named configurations, replicas, renaming, refusals."""

import json
from collections.abc import Iterator

import pytest

from tests.scenarios.labs import Lab
from tests.scenarios.nvidia import (
    GPU,
    allocatable,
    label,
    node_events,
    offers,
    pod,
    publish,
    replicas,
    use,
    visible,
)
from tests.scenarios.nvidia_config import APP, MAP
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["S3"]


@pytest.fixture
def lab(served: Lab) -> Iterator[Lab]:
    use(served, {"name": MAP, "default": ""})
    yield served
    served.delete_workloads()
    label(served, "")
    offers(served, {GPU: 80})


globals().update(ROWS.tests)


def test_s3_3_a_change_of_the_config_map_applies_without_a_restart(lab: Lab) -> None:
    publish(lab, MAP, {"some": replicas(5)})
    label(lab, "some")
    offers(lab, {GPU: 40})
    publish(lab, MAP, {"some": replicas(3)})
    offers(lab, {GPU: 24})


def test_two_replicas_are_of_two_gpus(lab: Lab) -> None:
    publish(lab, MAP, {"two": replicas(2)})
    label(lab, "two")
    offers(lab, {GPU: 16})
    lab.apply(pod("wide", count=8))
    lab.settled(APP, {"Running": 1})
    assert len(set(visible(lab, "wide").split(","))) == 8


def test_shares_of_memory_or_compute_never_land_on_such_a_node(lab: Lab) -> None:
    publish(lab, MAP, {"two": replicas(2)})
    label(lab, "two")
    offers(lab, {GPU: 16})
    lab.apply(pod("share", **{"nvidia.com/gpumem": 1000}))
    lab.settled(APP, {"Pending": 1})
    assert "offers its GPUs only as nvidia.com/gpu" in lab.lamina("why", "share").stdout
    lab.kubectl("delete", "pod", "share", "--grace-period=1")


def test_a_bad_config_is_refused_on_the_node_and_the_one_before_stays(lab: Lab) -> None:
    publish(lab, MAP, {"good": replicas(2)})
    label(lab, "good")
    offers(lab, {GPU: 16})
    publish(lab, MAP, {"good": replicas(1)})
    wait_until(
        lambda: any("number of replicas must be >= 2" in each for each in node_events(lab, "ConfigurationRefused")),
        lambda: str(node_events(lab, "ConfigurationRefused")),
    )
    label(lab, "absent")
    wait_until(
        lambda: any("specified config absent does not exist" in e for e in node_events(lab, "ConfigurationRefused")),
        lambda: str(node_events(lab, "ConfigurationRefused")),
    )
    assert allocatable(lab) == {GPU: 16}


def test_a_gpu_in_use_stays_in_its_mode_until_it_is_idle(lab: Lab) -> None:
    """A container with a share keeps its GPU; the others are allocated in the new way, and it follows when it ends."""
    lab.apply(pod("share", **{"nvidia.com/gpumem": 1000}))
    lab.settled(APP, {"Running": 1})
    publish(lab, MAP, {"two": replicas(2)})
    label(lab, "two")
    offers(lab, {GPU: 15})  # two replicas of seven GPUs, and the device that the container holds
    [gpu] = json.loads(lab.kubectl("get", "grants", "-o", "json"))["items"][0]["spec"]["containers"][0]["shares"]
    gpus = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]["gpus"]
    assert [each["uuid"] for each in gpus if each.get("mode") == "quota"] == [gpu["gpu"]]
    lab.kubectl("delete", "pod", "share", "--grace-period=1")
    offers(lab, {GPU: 16})
