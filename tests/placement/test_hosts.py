"""Where kube-scheduler itself allows a pod: labels, affinity, taints, and what a node offers next to GPUs."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.placement import Cause, Hosts

Object = dict[str, Any]
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def node(name: str = "n", labels: Object | None = None, spec: Object | None = None, **allocatable: str) -> Object:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec or {},
        "status": {"allocatable": allocatable},
    }


def pod(requests: Object | None = None, **spec: Any) -> Object:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": requests or {}}}], **spec}}


def reasons(asking: Object, host: Object, *others: Object) -> list[str]:
    hosts = Hosts([host], [_on_node(other) for other in others], lambda name: name == "nvidia.com/gpu")
    return [refusal.miss.reason for refusal in hosts.refusals(asking, "n")]


def _on_node(other: Object) -> Object:
    return {**other, "spec": {**other["spec"], "nodeName": "n"}}


def affinity(*terms: Object) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return pod(affinity={"nodeAffinity": required})


def expression(operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": "pool", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize("labels", [{}, {"pool": "a"}, {"pool": "b"}, {"pool": "a", "zone": "z"}, {"zone": "z"}])
@pytest.mark.parametrize("selector", [{}, {"pool": "a"}, {"pool": "a", "zone": "z"}])
def test_each_label_of_the_selector_has_to_be_there(labels: Object, selector: Object) -> None:
    missing = dict(selector.items() - labels.items())
    written = ", ".join(f"{key}={value}" for key, value in sorted(missing.items()))
    expected = [f"the node does not have the label {written} that the pod selects"] if missing else []
    assert reasons(pod(nodeSelector=selector), node(labels=labels)) == expected


@pytest.mark.parametrize(
    ("operator", "values", "allowed"),
    [
        ("In", ["a", "5"], {"a", "5"}),
        ("In", [], set()),
        ("NotIn", ["a", "5"], {None, "b", "7"}),
        ("Exists", [], {"a", "b", "5", "7"}),
        ("DoesNotExist", [], {None}),
        ("Gt", ["5"], {"7"}),
        ("Lt", ["7"], {"5"}),
        ("Gt", ["a"], set()),
        ("Gt", [], set()),
        ("Equals", ["a"], set()),
    ],
)
def test_each_operator_of_affinity(operator: str, values: list[str], allowed: set[str | None]) -> None:
    for value in (None, "a", "b", "5", "7"):
        host = node(labels={} if value is None else {"pool": value})
        assert (reasons(affinity(expression(operator, *values)), host) == []) is (value in allowed), value


def test_of_terms_one_has_to_hold_and_of_its_parts_all() -> None:
    a, b, named = expression("In", "a"), expression("In", "b"), {"key": "metadata.name", "operator": "In"}
    this, other = ({"matchFields": [{**named, "values": [name]}]} for name in ("n", "m"))
    host = node(labels={"pool": "a"})
    for terms, allowed in (
        ([a], True), ([b], False), ([a, b], True), ([], False), ([{}], False), ([this], True), ([other], False),
        ([a | this], True), ([a | other], False), ([b | this], False), ([b | this, a], True),
    ):  # fmt: skip
        assert (reasons(affinity(*terms), host) == []) is allowed, terms
    assert reasons(pod(affinity={"podAffinity": {}}), host) == []


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "team", "value": "a"}, True),
        ({"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "team", "value": "b"}, False),
        ({"key": "team"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"value": "a"}, False),
        ({"key": "team", "operator": "Like", "value": "a"}, False),
    ],
)
def test_a_taint_keeps_away_who_does_not_tolerate_it(toleration: Object, tolerated: bool) -> None:
    found = reasons(pod(tolerations=[toleration]), node(spec={"taints": [TAINT]}))
    assert found == ([] if tolerated else ["the pod does not tolerate the taint team=a:NoSchedule"])


@pytest.mark.parametrize(("effect", "keeps_away"), [("NoExecute", True), ("PreferNoSchedule", False)])
def test_only_hard_taints_count(effect: str, keeps_away: bool) -> None:
    assert bool(reasons(pod(), node(spec={"taints": [{"key": "t", "effect": effect}]}))) is keeps_away


def test_a_cordoned_node_is_named_once() -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    cordoned = node(spec={"unschedulable": True, "taints": [taint]})
    assert reasons(pod(), cordoned) == ["the node is unschedulable (kubectl cordon)"]
    assert reasons(pod(tolerations=[{"key": taint["key"], "operator": "Exists"}]), cordoned) == []


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ({"cpu": "1500m"}, []),
        ({"cpu": "1501m"}, ["needs 1.501 CPU; 1.5 of 2 free"]),
        ({"cpu": "2001m"}, ["needs 2.001 CPU; this node offers 2"]),
        ({"memory": "1Gi"}, []),
        ({"memory": "1025Mi"}, ["needs 1025 MiB of host memory; 1024 of 2048 free"]),
        ({"ephemeral-storage": "1Mi"}, ["needs 1 MiB of ephemeral-storage; this node offers 0"]),
        ({"example.com/nic": "1"}, []),
        ({"example.com/nic": "2"}, ["needs 2 example.com/nic; this node offers 1"]),
        ({"nvidia.com/gpu": "9"}, []),
        ({"cpu": "0", "example.com/none": "0"}, []),
        ({"cpu": "9", "memory": "9Gi"}, ["needs 9 CPU; this node offers 2",
                                         "needs 9216 MiB of host memory; this node offers 2048"]),
    ],
)  # fmt: skip
def test_each_resource_counts_with_what_pods_have(requests: Object, expected: list[str]) -> None:
    host = node(cpu="2", memory="2Gi", pods="3", **{"example.com/nic": "1"})
    ended = pod({"cpu": "2"}) | {"status": {"phase": "Succeeded"}}
    assert reasons(pod(requests), host, pod({"cpu": "500m", "memory": "1Gi"}), ended) == expected


def test_the_number_of_pods_counts() -> None:
    assert reasons(pod(), node(pods="2"), pod()) == []
    assert reasons(pod(), node(pods="2"), pod(), pod()) == ["the node has 2 pods, and may not have more"]


@given(st.lists(st.integers(0, 3000), max_size=6), st.integers(1, 3000))
def test_a_node_takes_what_is_left_and_not_one_thousandth_more(taken: list[int], more: int) -> None:
    offered = sum(taken) + more
    others = [pod({"cpu": f"{each}m"}) for each in taken]
    assert reasons(pod({"cpu": f"{more}m"}), node(cpu=f"{offered}m"), *others) == []
    assert len(reasons(pod({"cpu": f"{more + 1}m"}), node(cpu=f"{offered}m"), *others)) == 1


def test_all_that_is_in_the_way_is_one_miss_with_the_first_cause() -> None:
    rules = {
        Cause.UNSCHEDULABLE: ({"unschedulable": True}, {}),
        Cause.TAINTED: ({"taints": [TAINT]}, {}),
        Cause.NOT_SELECTED: ({}, {"nodeSelector": {"pool": "a"}}),
        Cause.HOST: ({}, {"overhead": {"cpu": "1"}}),
    }
    for broken in product([False, True], repeat=len(rules)):
        causes = [cause for cause, chosen in zip(rules, broken, strict=True) if chosen]
        of_node: Object = {key: value for cause in causes for key, value in rules[cause][0].items()}
        of_pod: Object = {key: value for cause in causes for key, value in rules[cause][1].items()}
        hosts = Hosts([node(spec=of_node)], [], lambda _: False)
        miss = hosts.miss(pod(**of_pod), "n")
        assert (None if miss is None else miss.cause) == (causes[0] if causes else None)
        assert miss is None or (miss.lasting and miss.reason.count("; ") == len(causes) - (Cause.HOST not in causes))


def test_what_is_taken_can_be_given_back() -> None:
    asking, hosts = pod({"cpu": "2"}), Hosts([node(cpu="3")], [], lambda _: False)
    hosts.take(asking, "n")
    miss = hosts.miss(asking, "n")
    assert miss is not None and not miss.lasting and miss.cause is Cause.HOST
    hosts.take(asking, "n", -1)
    assert hosts.miss(asking, "n") is None
    gone = hosts.miss(asking, "m")
    assert gone is not None and gone.reason == "the node no longer exists"
