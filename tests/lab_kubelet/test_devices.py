"""Who gets which device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.ports.files import Files
from lamina.ports.kubelet.allocations import read_assignments
from lamina.ports.kubelet.servers import PLUGIN_FOLDER
from lamina_lab.kubelet.device_manager import checkpoint
from lamina_lab.kubelet.device_manager.allocation import (
    FORGET_AFTER_S,
    Answer,
    Choice,
    Device,
    DeviceAllocation,
    DeviceError,
    DeviceLedger,
    device_limits,
    natural,
    pick,
)

GPU = "nvidia.com/gpu"


def ledger(*ids: str, unhealthy: tuple[str, ...] = ()) -> DeviceLedger:
    made = DeviceLedger()
    made.report(GPU, [Device(id, id not in unhealthy) for id in (*ids, *unhealthy)])
    return made


def hold(made: DeviceLedger, pod: str, *ids: str, container: str = "c") -> None:
    made.hold(DeviceAllocation(pod, container, GPU, ids, made.numa_of(GPU, ids), Answer()))


def test_amounts_follow_health_and_the_plugin() -> None:
    made = ledger("a", "b", unhealthy=("c",))
    assert made.amounts(0) == {GPU: (3, 2)}
    made.plugin_gone(GPU, 10)
    assert made.amounts(11) == {GPU: (3, 0)}
    assert made.amounts(10 + FORGET_AFTER_S + 1) == {GPU: (0, 0)}
    made.report(GPU, [Device("a", True)])
    assert made.amounts(9999) == {GPU: (1, 1)}


def test_a_resource_from_before_a_restart_is_empty() -> None:
    made = DeviceLedger()
    made.expect(GPU)
    assert made.amounts(1e9) == {GPU: (0, 0)}
    with pytest.raises(DeviceError, match="no healthy devices present; cannot allocate unhealthy devices"):
        made.choose("p", "c", GPU, 1, ())


def test_only_free_and_healthy_devices_are_offered() -> None:
    made = ledger("ticket-10", "ticket-9", "ticket-2", unhealthy=("ticket-1",))
    hold(made, "other", "ticket-2")
    assert made.choose("p", "c", GPU, 2, ()) == Choice(GPU, (), ("ticket-9", "ticket-10"), 2)
    with pytest.raises(
        DeviceError,
        match=r"requested number of devices unavailable for nvidia\.com/gpu\. Requested: 3, Available: 2",
    ):
        made.choose("p", "c", GPU, 3, ())
    made.release("other")
    assert made.choose("p", "c", GPU, 3, ()).missing == 3


def test_devices_of_init_containers_come_first() -> None:
    made = ledger("a", "b", "c")
    hold(made, "p", "b", container="init")
    assert made.choose("p", "c", GPU, 2, {"b"}) == Choice(GPU, ("b",), ("a", "c"), 1)
    assert made.choose("p", "c", GPU, 1, {"b"}).missing == 0


def test_what_a_container_holds_stays() -> None:
    made = ledger("a", "b")
    hold(made, "p", "a")
    assert made.choose("p", "c", GPU, 1, ()) == Choice(GPU, ("a",), (), 0)
    with pytest.raises(DeviceError, match=r'changed request for resource "nvidia\.com/gpu" from 1 to 2'):
        made.choose("p", "c", GPU, 2, ())
    made.report(GPU, [Device("a", False), Device("b", True)])
    with pytest.raises(DeviceError, match="previously allocated devices are no longer healthy"):
        made.choose("p", "c", GPU, 1, ())


@given(
    available=st.lists(st.integers(0, 30).map(str), unique=True, min_size=1),
    preferred=st.lists(st.integers(0, 40).map(str)),
    data=st.data(),
)
def test_settling_takes_the_preferred_ones_that_are_there(
    available: list[str], preferred: list[str], data: st.DataObject
) -> None:
    missing = data.draw(st.integers(0, len(available)))
    chosen = pick(Choice(GPU, ("fixed",), tuple(available), missing), preferred)
    assert chosen[0] == "fixed"
    rest = chosen[1:]
    assert len(rest) == len(set(rest)) == missing
    assert set(rest) <= set(available)
    wanted = set(preferred) & set(available)
    assert len(set(rest) & wanted) == min(missing, len(wanted))


def test_limits_that_are_devices() -> None:
    resources = {"limits": {GPU: "2", "cpu": "1", "example.com/x": "0", "example.com/y": "1k"}}
    known = {GPU, "example.com/x", "example.com/y"}
    assert device_limits({}, {"name": "main", "resources": resources}, known) == {GPU: 2, "example.com/y": 1000}
    assert device_limits({}, {"name": "main"}, {GPU}) == {}


def test_what_a_claim_serves_is_no_device_of_that_container() -> None:
    made = {"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-0"}
    pod = {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [made]}}}
    resources = {"limits": {GPU: "2", "example.com/y": "1"}}
    known = {GPU, "example.com/y"}
    assert device_limits(pod, {"name": "main", "resources": resources}, known) == {"example.com/y": 1}
    assert device_limits(pod, {"name": "other", "resources": resources}, known) == {GPU: 2, "example.com/y": 1}


def test_natural_order() -> None:
    assert sorted(["t-10", "t-9", "a", "t-1"], key=natural) == ["a", "t-1", "t-9", "t-10"]


def test_checkpoint_keeps_allocations(tmp_path: Path) -> None:
    made = DeviceLedger()
    made.report(GPU, [Device("a", True, (0, 1))])
    answer = Answer({"A": "1"}, {"cdi.k8s.io/x": "v/c=y"}, {"/in": "/out"}, ("v/c=x",))
    kept = DeviceAllocation("p", "c", GPU, ("a",), {"a": (0, 1)}, answer)
    made.hold(kept)
    checkpoint.save(tmp_path, made)
    again = checkpoint.load(tmp_path)
    assert again.allocations() == [kept]
    assert again.amounts(0) == {GPU: (0, 0)}
    again.retain({"other"})
    assert again.allocations() == []


KUBELETS = (
    '{"Data":{"PodDeviceEntries":[{"PodUID":"9a15d2b5-c152","ContainerName":"app","ResourceName":"nvidia.com/gpu",'
    '"DeviceIDs":{"1":["GPU-9b34","GPU-c1e9"]},"AllocResp":"ChsKFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSAXg="}],'
    '"RegisteredDevices":{"nvidia.com/gpu":["GPU-77a7","GPU-9b34","GPU-c1e9"]}},"Checksum":2530956716}'
)
"""As a real kubelet writes it."""


def test_the_file_has_kubelets_form(tmp_path: Path) -> None:
    (tmp_path / checkpoint.FILE).write_text(KUBELETS)
    ledger = checkpoint.load(tmp_path)
    (held,) = ledger.allocations()
    assert (held.pod_uid, held.container, held.ids) == ("9a15d2b5-c152", "app", ("GPU-9b34", "GPU-c1e9"))
    assert held.answer.envs == {"NVIDIA_VISIBLE_DEVICES": "x"}
    ledger.report(GPU, [Device(id, True) for id in ("GPU-77a7", "GPU-9b34", "GPU-c1e9")])
    checkpoint.save(tmp_path, ledger)
    written, original = json.loads((tmp_path / checkpoint.FILE).read_text()), json.loads(KUBELETS)
    assert written["Data"] == original["Data"]
    folder = tmp_path / PLUGIN_FOLDER
    folder.mkdir()
    (tmp_path / checkpoint.FILE).rename(folder / checkpoint.FILE)
    (assigned,) = read_assignments(Files(), tmp_path, GPU)
    assert assigned == ("9a15d2b5-c152", "app", frozenset({"GPU-9b34", "GPU-c1e9"}))


@pytest.mark.parametrize("text", [None, "", "{", '{"allocations": 1}'])
def test_unreadable_checkpoint_is_empty(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / checkpoint.FILE).write_text(text)
    assert checkpoint.load(tmp_path).allocations() == []
