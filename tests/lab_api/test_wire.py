"""Protobuf bodies, and the table that they and JSON are read by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.ports.kube import Object
from lamina_lab.api.protobuf import decoder
from lamina_lab.api.protobuf.messages import by_name, messages
from lamina_lab.api.schema import shapes
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.kubernetes.errors import ApiError


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out, value = out + bytes((value & 0x7F | 0x80,)), value >> 7
    return out + bytes((value,))


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(api_version: str, kind: str, body: bytes) -> bytes:
    head = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\0" + field(1, head) + field(2, body)


def test_a_config_map() -> None:
    pair = field(1, b"color") + field(2, b"green")
    meta = field(1, b"cm") + field(2, b"") + field(7, 0) + field(11, field(1, b"a") + field(2, b""))
    body = field(1, meta) + field(2, pair) + field(4, 0)
    assert decoder.decode(envelope("v1", "ConfigMap", body)) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "cm", "labels": {"a": ""}},
        "data": {"color": "green"},
        "immutable": False,
    }


def test_a_container_with_all_the_odd_forms() -> None:
    quantity, port = field(1, b"500m"), field(1, 1) + field(3, b"http")
    limits = field(1, field(1, b"cpu") + field(2, quantity))
    probe = field(1, field(2, field(2, port))) + field(3, 5)
    container = (
        field(1, b"m") + field(2, b"i") + field(3, b"sleep") + field(3, b"5") + field(8, limits) + field(10, probe)
    )
    volume = field(1, b"v") + field(2, field(2, b""))
    spec = field(2, container) + field(1, volume) + field(4, 0) + field(11, 0) + field(25, -1)
    deleted = field(9, field(1, 1_767_268_800))
    found = decoder.decode(envelope("v1", "Pod", field(1, deleted) + field(2, spec)))
    assert found["metadata"] == {"deletionTimestamp": "2026-01-01T12:00:00Z"}
    assert found["spec"] == {
        "containers": [
            {
                "name": "m",
                "image": "i",
                "command": ["sleep", "5"],
                "resources": {"limits": {"cpu": "500m"}},
                "livenessProbe": {"httpGet": {"port": "http"}, "timeoutSeconds": 5},
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 0,
        "priority": -1,
    }


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"k8s\0", 400),
        (b"k8s\0\x0a\xff", 400),
        (envelope("v1", "Pod", b"\x0a"), 400),
        (envelope("v1", "Pod", field(1, field(1, b"\xff"))), 400),
        (envelope("lamina.dev/v1alpha1", "Grant", b""), 415),
        (envelope("v1", "ConfigMap", field(99, b"what is this")), 415),
    ],
)
def test_broken_and_unknown_bodies(body: bytes, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        decoder.decode(body)
    assert refused.value.code == code


@given(st.binary(max_size=64), st.sampled_from(["Pod", "Deployment", "ConfigMap", "Job", "Secret"]))
def test_noise_is_refused_or_read_but_never_an_accident(noise: bytes, kind: str) -> None:
    for body in (noise, b"k8s\0" + noise, envelope("v1", kind, noise)):
        try:
            assert decoder.decode(body)["kind"] == kind
        except ApiError as error:
            assert error.code in (400, 415)


def test_the_table_knows_every_kind_of_its_own_that_is_served() -> None:
    for resource in Catalog():
        if not resource.shares:
            assert "metadata" in by_name(resource.kind), resource.kind
    assert {"emptyDir", "name"} <= set(by_name("Volume"))
    for name, fields in messages().items():
        numbers = [each.number for each in fields]
        assert len(numbers) == len(set(numbers)), name


@pytest.mark.parametrize(
    ("body", "kept", "unknown"),
    [
        ({"data": {"a": "b"}, "extra": 1}, {"data": {"a": "b"}}, ["extra"]),
        ({"data": None}, {}, []),
        ({"metadata": {"name": "x", "labls": {}}}, {"metadata": {"name": "x"}}, ["metadata.labls"]),
    ],
)
def test_unknown_and_null_fields_are_taken_out(body: Object, kept: Object, unknown: list[str]) -> None:
    obj = {"kind": "ConfigMap", "apiVersion": "v1", **body}
    assert shapes.conform(Catalog().named("configmaps"), obj) == unknown
    assert obj == {"kind": "ConfigMap", "apiVersion": "v1", **kept}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"data": {"a": 1}}, "cannot unmarshal number into Go struct field ConfigMap.data[a] of type string"),
        ({"data": []}, "cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
        ({"immutable": "yes"}, "cannot unmarshal string into Go struct field ConfigMap.immutable of type bool"),
        ({"metadata": {"finalizers": [1]}}, "ObjectMeta.metadata.finalizers[0] of type string"),
        ({"metadata": {"labels": {"a": True}}}, "cannot unmarshal bool into Go struct field"),
    ],
)
def test_wrong_types_are_refused(body: Object, wanted: str) -> None:
    with pytest.raises(ApiError) as refused:
        shapes.conform(Catalog().named("configmaps"), {"kind": "ConfigMap", "apiVersion": "v1", **body})
    assert refused.value.code == 400
    assert wanted in refused.value.message
