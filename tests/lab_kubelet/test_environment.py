"""A container's environment, command and amounts."""

from __future__ import annotations

from typing import Any

import pytest

from lamina_lab.kubelet.containers.environment import (
    ConfigError,
    DownwardFacts,
    EnvironmentSource,
    assignments,
    combined,
    command_of,
    expand,
    own_variables,
    sources,
    texts,
)

FACTS = DownwardFacts("10.0.0.1", "127.1.1.1", {"cpu": "8", "memory": "4096Mi"})
POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u-1", "labels": {"a/b": "l"}, "annotations": {"n": "v"}},
    "spec": {"nodeName": "node-0"},
}


def own(*env: dict[str, Any], contents: dict[Any, Any] | None = None, **container: Any) -> dict[str, str]:
    spec = {"name": "c", "env": list(env), **container}
    pod = POD | {"spec": {**POD["spec"], "containers": [spec]}}
    return own_variables(pod, spec, contents or {}, FACTS)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['a/b']", "l"),
        ("metadata.annotations['n']", "v"),
        ("metadata.labels['none']", ""),
        ("spec.nodeName", "node-0"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.1.1.1"),
        ("status.hostIP", "10.0.0.1"),
    ],
)
def test_fields_of_the_pod(path: str, expected: str) -> None:
    assert own({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}) == {"X": expected}


def test_unknown_field_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unsupported fieldPath: status\.phase"):
        own({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}})


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("limits.cpu", "0", "2"),
        ("limits.memory", "1Mi", "4096"),
        ("requests.cpu", None, "0"),
    ],
)
def test_amounts_are_rounded_up(resource: str, divisor: str | None, expected: str) -> None:
    ref = {"resource": resource} | ({"divisor": divisor} if divisor else {})
    found = own({"name": "X", "valueFrom": {"resourceFieldRef": ref}}, resources={"limits": {"cpu": "1500m"}})
    assert found == {"X": expected}


def test_config_maps_and_secrets() -> None:
    env = [
        {"name": "ONE", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
        {"name": "TWO", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
    ]
    loose = [{"prefix": "P_", "configMapRef": {"name": "m"}}]
    container = {"env": env, "envFrom": loose}
    assert sources(container) == [EnvironmentSource("ConfigMap", "m", False), EnvironmentSource("Secret", "s", True)]
    contents = {("ConfigMap", "m"): {"k": "v"}}
    assert own(*env, contents=contents, envFrom=loose) == {"P_k": "v", "ONE": "v"}
    with pytest.raises(ConfigError, match="couldn't find key k in ConfigMap ns/m"):
        own(env[0], contents={("ConfigMap", "m"): {}})


def test_texts_of_objects() -> None:
    assert texts({"kind": "ConfigMap", "data": {"a": "b"}}) == {"a": "b"}
    assert texts({"kind": "Secret", "data": {"a": "Yg=="}}) == {"a": "b"}
    assert texts({"kind": "ConfigMap"}) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y$(B)"),
        ("$$(A)", "$(A)"),
        ("$$", "$"),
        ("$A $(", "$A $("),
        ("$(date +%s)", "$(date +%s)"),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected


def test_values_use_what_stands_before_them() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(C)"}, {"name": "C"}]
    assert own(*env) == {"A": "1", "B": "1$(C)", "C": ""}
    assert command_of({"command": ["echo", "$(A)"], "args": ["$(B)"]}, {"A": "1"}) == (["echo", "1"], ["$(B)"])


def test_no_manifest_gives_itself_a_gpu() -> None:
    wish = {"NVIDIA_VISIBLE_DEVICES": "all", "LD_PRELOAD": "mine.so", "LD_LIBRARY_PATH": "/mine"}
    without = combined({}, {}, wish, {"SIMGPU_MACHINE": "/m"}, None)
    assert without["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert without["SIMGPU_MACHINE"] == "/m"
    brought = {"NVIDIA_VISIBLE_DEVICES": "GPU-1", "LD_PRELOAD": "facade.so", "LD_LIBRARY_PATH": "/sim"}
    with_gpu = combined({}, {"NVIDIA_VISIBLE_DEVICES": "plugin"}, wish, {}, brought)
    assert with_gpu["NVIDIA_VISIBLE_DEVICES"] == "GPU-1"
    assert with_gpu["LD_PRELOAD"] == "facade.so:mine.so"
    assert with_gpu["LD_LIBRARY_PATH"] == "/sim:/mine"


def test_assignments() -> None:
    assert assignments(["A=1", "B=x=y", "C="], "--label") == {"A": "1", "B": "x=y", "C": ""}
    for bad in ("A", "=1"):
        with pytest.raises(ValueError, match=r"--label .*: must be KEY=VALUE"):
            assignments([bad], "--label")
