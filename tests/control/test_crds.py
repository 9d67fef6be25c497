"""The definitions of our kinds say what the types say, in the form that Kubernetes demands."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from lamina.control.crds import apply, definitions, schema_of
from lamina.model.gpus import Gpu, InstanceThere, Inventory, MigInstance, Mode, Plain
from lamina.model.grants import ComputePolicy, ContainerGrant, Grant, Share
from lamina.model.mps import MpsDaemon, MpsState
from lamina.model.sharing import Strategy, TimeSlice
from lamina.ports.kube import CUSTOM_RESOURCE_DEFINITIONS
from lamina.ports.kube.fake import FakeKube

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
    healthy=False,
    reason="XID",
    cordoned=True,
    links=(0, 120),
    mode=Mode.TIMESLICE,
    plain="nvidia.com/gpu",
    modes=(Mode.MIG, Mode.WHOLE),
    mig_card="A100-40GB",
    mig_enabled=True,
    instances=(InstanceThere(profile="1g.5gb", start=4, made=True, used=True),),
    time_slice=TimeSlice.LONG,
    time_slice_failure="Not Supported",
)
SHARE = Share(
    gpu="GPU-0",
    memory_mib=1,
    cores=2,
    mode=Mode.WHOLE,
    exclusive=True,
    compute_policy=ComputePolicy.CAP,
    most_sharers=20,
    one_isolation=True,
    mig=MigInstance(profile="1g.5gb", start=4),
)
CONTAINER = ContainerGrant(
    name="c", shares=(SHARE,), init=True, sidecar=True, priority=1, oversubscribed=True, log_level=2, because="x"
)
FULL = {
    Inventory: Inventory(
        node="n",
        driver="515",
        gpus=(GPU,),
        plain=(Plain("nvidia.com/gpu", 16, 8, Strategy.TIME_SLICING),),
        driver_held=("u/c",),
        mps=(MpsDaemon(gpu="GPU-0", state=MpsState.WAITING, reason="r", memory_mib=4096, threads_percent=10),),
        mig_left=("GPU 0 keeps 1g.5gb at 4: it is in use by process 7",),
    ),
    Grant: Grant(pod="p", pod_uid="u", node="n", dialect="hami", containers=(CONTAINER,)),
}


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from fields(inner, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[*]")


def values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from values(inner, f"{path}.{name}")
    if isinstance(value, list):
        for inner in value:
            yield from values(inner, f"{path}[*]")


@pytest.mark.parametrize("kind", FULL)
def test_every_field_of_the_type_is_in_the_schema_with_its_type(kind: type[msgspec.Struct]) -> None:
    schema = dict(fields(schema_of(kind)))
    names = {dict: "object", list: "array", str: "string", int: "integer", bool: "boolean"}
    written = dict(values(msgspec.json.decode(msgspec.json.encode(FULL[kind]))))
    assert {path: schema[path]["type"] for path in written} == {path: names[type(v)] for path, v in written.items()}
    assert set(schema) == set(written), "the example above leaves no field out"


@pytest.mark.parametrize("kind", FULL)
def test_the_schema_is_structural(kind: type[msgspec.Struct]) -> None:
    for path, schema in fields(schema_of(kind)):
        assert "type" in schema, path
        assert not {"$ref", "anyOf", "default", "title", "additionalProperties"} & set(schema), path
        assert set(schema.get("required", ())) <= set(schema.get("properties", {})), path


def test_choices_and_missing_values() -> None:
    grant = dict(fields(schema_of(Grant)))
    assert set(grant[".containers[*].shares[*].mode"]["enum"]) == set(Mode)
    assert set(grant[".containers[*].shares[*].computePolicy"]["enum"]) == set(ComputePolicy)
    assert grant[".containers[*].priority"]["nullable"] is True
    assert grant[""]["required"] == ["pod", "podUID", "node", "dialect", "containers"]


@pytest.mark.parametrize("definition", definitions(), ids=lambda each: each["metadata"]["name"])
def test_the_columns_show_fields_that_exist(definition: dict[str, Any]) -> None:
    (version,) = definition["spec"]["versions"]
    known = dict(fields(version["schema"]["openAPIV3Schema"]))
    shown = {column["name"]: column for column in version["additionalPrinterColumns"]}
    assert shown.pop("Age")["type"] == "date"
    assert {name: known[column["jsonPath"]]["type"] for name, column in shown.items()} == {
        name: column["type"] for name, column in shown.items()
    }


async def test_definitions_are_written_once_and_mended_when_changed() -> None:
    kube = FakeKube()
    await apply(kube)
    await apply(kube)
    writes = [verb for verb, _, _ in kube.calls if verb in ("create", "replace")]
    assert writes == ["create", "create"]
    name = "grants.lamina.dev"
    body = {"spec": {"versions": []}}
    await kube.patch(CUSTOM_RESOURCE_DEFINITIONS, name, body)
    await apply(kube)
    mended = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    assert mended["spec"] == definitions()[1]["spec"]
