"""What is on the wire stays as it is, and nothing is lost between wire and domain."""

import json
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.claims import MAX_CLAIMS, HeldClaim
from lamina.core.evictions import DisplacedBorrower, IdlePod
from lamina.core.gpus import (
    ExistingMigInstance,
    Gpu,
    Inventory,
    MigDeviceCount,
    MigInstance,
    Mode,
    NativeResource,
    RefusedConfiguration,
)
from lamina.core.grants import ComputePolicy, ContainerGrant, ContainerSize, Grant, Share
from lamina.core.mps import MpsDaemon, MpsState
from lamina.core.objects import confirmed_survivors, read_grant, read_inventory, write_spec
from lamina.core.sharing import Strategy, TimeSlice
from lamina.core.sizes import AppliedSize
from lamina.core.survivors import MAX_SURVIVORS, Survivor
from lamina.errors import BadInput

GOLDEN = Path(__file__).parent / "golden"

# Nothing has its default value here, so that every field is written.
GPU = Gpu(
    uuid="GPU-0",
    index=0,
    model="V100",
    memory_mib=1,
    capacity_mib=2,
    cores_capacity=200,
    slots=5,
    mig_capable=True,
    numa=1,
    minor=7,
    healthy=False,
    reason="XID",
    cordoned=True,
    links=(0, 120),
    mode=Mode.TIMESLICE,
    native_resource="nvidia.com/gpu",
    modes=(Mode.MIG, Mode.WHOLE),
    mig_card="A100-40GB",
    mig_enabled=True,
    instances=(ExistingMigInstance(profile="1g.5gb", start=4, made=True, used=True),),
    time_slice=TimeSlice.LONG,
    time_slice_failure="Not Supported",
)
SHARE = Share(
    gpu="GPU-0",
    memory_mib=1,
    physical_mib=5,
    cores=2,
    most_cores=50,
    most_memory_mib=3,
    mode=Mode.WHOLE,
    exclusive=True,
    compute_policy=ComputePolicy.CAP,
    most_sharers=20,
    one_isolation=True,
    mig=MigInstance(profile="1g.5gb", start=4),
)
CONTAINER = ContainerGrant(
    name="c",
    shares=(SHARE,),
    init=True,
    sidecar=True,
    priority=1,
    oversubscribed=True,
    log_level=2,
    because="x",
    size=ContainerSize(generation=3, memory_mib=1, cores=2),
)
WIRE_GPU = {"uuid": "GPU-0", "index": 0, "model": "V100", "memoryMiB": 16384, "capacityMiB": 16384}
WIRE_CLAIM = {"namespace": "default", "name": "k", "uid": "v", "requests": []}
WIRE_SURVIVOR = {"namespace": "default", "pod": "p", "podUID": "u", "containers": []}
INVENTORY = Inventory(
    node="n",
    driver="515",
    gpus=(GPU,),
    native_resources=(NativeResource("nvidia.com/gpu", 16, 8, Strategy.TIME_SLICING),),
    tickets=("volcano.sh/vgpu-number",),
    driver_limited=("u/c",),
    mps=(
        MpsDaemon(
            gpu="GPU-0", state=MpsState.WAITING, reason="r", memory_mib=4096, threads_percent=10, for_grants=True
        ),
    ),
    mig_leftovers=("GPU 0 keeps 1g.5gb at 4: it is in use by process 7",),
    survivors=(Survivor(namespace="default", pod="p", pod_uid="u", containers=(CONTAINER,)),),
    resized=(
        AppliedSize(pod_uid="u", container="c", generation=3, waiting="w", held_generation=4, memory_mib=5, cores=6),
    ),
    idle=(IdlePod(pod_uid="u", since=1700000000),),
    displaced=(DisplacedBorrower(pod_uid="u", since=1700000001),),
    refused=(RefusedConfiguration(source="ConfigMap a/b", reason="it is bad", since=1),),
    claims=(HeldClaim(namespace="default", name="k", uid="v", requests=(CONTAINER,)),),
    mig_devices=(MigDeviceCount(profile="1g.5gb", count=7, resource="nvidia.com/mig-1g.5gb", reason="x"),),
)
GRANT = Grant(pod="p", pod_uid="u", node="n", dialect="hami", containers=(CONTAINER,), revision=4)


def inventory_object(spec: Any, name: str = "n") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def grant_object(spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "g"}, "spec": spec}


def golden(name: str) -> tuple[Any, str]:
    text = (GOLDEN / f"{name}.json").read_text()
    return json.loads(text), text


def test_the_wire_form_of_an_inventory() -> None:
    spec, text = golden("inventory")
    assert json.dumps(write_spec(INVENTORY), indent=1) + "\n" == text
    assert read_inventory(inventory_object(spec)) == INVENTORY


def test_the_wire_form_of_a_grant() -> None:
    spec, text = golden("grant")
    assert json.dumps(write_spec(GRANT), indent=1) + "\n" == text
    assert read_grant(grant_object(spec)) == GRANT


def test_an_inventory_without_its_defaults() -> None:
    gpu = Gpu(uuid="GPU-0", index=0, model="V100", memory_mib=16384, capacity_mib=16384)
    inventory = Inventory(node="n", gpus=(gpu,), native_resources=(NativeResource("nvidia.com/gpu", 1),))
    spec = {
        "node": "n",
        "gpus": [{"uuid": "GPU-0", "index": 0, "model": "V100", "memoryMiB": 16384, "capacityMiB": 16384}],
        "nativeResources": [{"resource": "nvidia.com/gpu", "count": 1, "replicas": 1, "sharing": "none"}],
    }
    assert write_spec(inventory) == spec
    assert read_inventory(inventory_object(spec)) == inventory


def test_a_grant_without_its_defaults() -> None:
    share = Share(gpu="GPU-0", memory_mib=1)
    grant = Grant(
        pod="p", pod_uid="u", node="n", dialect="hami", containers=(ContainerGrant(name="c", shares=(share,)),)
    )
    written_share = {
        "gpu": "GPU-0",
        "memoryMiB": 1,
        "physicalMiB": 0,
        "cores": 0,
        "mode": "quota",
        "exclusive": False,
        "computePolicy": "none",
        "mostSharers": None,
        "oneIsolation": False,
        "mostCores": 0,
        "mostMemoryMiB": 0,
        "mig": None,
    }
    spec = {
        "pod": "p",
        "podUID": "u",
        "node": "n",
        "dialect": "hami",
        "containers": [{"name": "c", "shares": [written_share]}],
        "revision": 0,
    }
    assert write_spec(grant) == spec
    assert read_grant(grant_object(spec)) == grant


def built(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type of the model within the bounds of the wire, whatever they mean."""
    if kind is int:
        return st.integers(0, 2**31 - 1)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return st.builds(kind, **{name: built(hint) for name, hint in get_type_hints(kind).items()})
    parts = get_args(kind)
    if get_origin(kind) is tuple:
        return st.lists(built(parts[0]), max_size=3).map(tuple)
    return st.one_of([built(part) for part in parts]) if parts else st.from_type(kind)


@given(built(Inventory))
def test_no_inventory_loses_anything(inventory: Inventory) -> None:
    assert read_inventory(inventory_object(write_spec(inventory), inventory.node)) == inventory


@given(built(Grant))
def test_no_grant_loses_anything(grant: Grant) -> None:
    assert read_grant(grant_object(write_spec(grant))) == grant


def test_unknown_fields_of_later_versions_are_ignored() -> None:
    assert read_inventory(inventory_object({"node": "n", "later": 1})) == Inventory(node="n")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (None, "inventory n cannot be read: Expected `object`, got `null`"),
        ({}, "inventory n cannot be read: Object missing required field `node`"),
        ({"node": "m"}, "inventory n: spec.node must be the name of the inventory, got m"),
        ({"node": "n", "gpus": [{"uuid": 1}]}, "inventory n cannot be read: .*gpus.*uuid"),
        ({"node": "n", "gpus": [WIRE_GPU | {"capacityMiB": 2**31}]}, r"`int` <= 2147483647 - at .*capacityMiB"),
        ({"node": "n", "gpus": [WIRE_GPU | {"memoryMiB": 2**64}]}, "inventory n cannot be read: .*memoryMiB"),
        ({"node": "n", "gpus": [WIRE_GPU | {"slots": -1}]}, "`int` >= 0"),
        ({"node": "n", "gpus": [WIRE_GPU | {"model": "x" * 254}]}, "length <= 253"),
        ({"node": "n", "gpus": [WIRE_GPU] * 129}, "length <= 128"),
        ({"node": "n", "survivors": [WIRE_SURVIVOR] * (MAX_SURVIVORS + 1)}, f"length <= {MAX_SURVIVORS}"),
        ({"node": "n", "survivors": [WIRE_SURVIVOR | {"podUID": 1}]}, "survivors.*podUID"),
        ({"node": "n", "claims": [WIRE_CLAIM] * (MAX_CLAIMS + 1)}, f"length <= {MAX_CLAIMS}"),
        ({"node": "n", "claims": [WIRE_CLAIM | {"uid": 1}]}, "claims.*uid"),
    ],
)
def test_unreadable_inventories(spec: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_inventory(inventory_object(spec))


def test_a_grant_with_too_much_is_unreadable() -> None:
    spec, _ = golden("grant")
    spec["containers"][0]["shares"][0]["memoryMiB"] = 2**63
    with pytest.raises(BadInput, match=r"grant default/g cannot be read: .*memoryMiB"):
        read_grant(grant_object(spec))


def test_unreadable_grants() -> None:
    with pytest.raises(BadInput, match="grant default/g cannot be read: Object missing required field `pod`"):
        read_grant(grant_object({}))


@pytest.mark.parametrize(
    ("status", "confirmed"),
    [
        ({"survivors": ["a/1", "b/2"]}, ("a/1", "b/2")),
        ({"survivors": ["a/1", 2, None]}, ("a/1",)),
        ({"survivors": "a/1"}, ()),
        ({"survivors": None}, ()),
        ({}, ()),
        (None, ()),
    ],
)
def test_a_status_that_is_odd_confirms_no_survivor(status: Any, confirmed: tuple[str, ...]) -> None:
    assert confirmed_survivors({"status": status}) == confirmed
    assert confirmed_survivors({}) == ()
