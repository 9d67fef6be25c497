"""What the columns of kubectl get say."""

from typing import Any

import pytest

from lamina.ports.kube import Object
from lamina_lab.api.printing import jsonpath, tables
from lamina_lab.api.printing.ages import duration
from lamina_lab.api.printing.pods import reason
from lamina_lab.api.schema.resources import Catalog

NOW = 1_767_268_800.0


def row(resource: str, obj: Object) -> dict[str, Any]:
    """Cells by column name."""
    table = tables.table(Catalog().named(resource), [obj], "None", NOW, "1")
    names = [each["name"] for each in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


def _pod(phase: str = "Running", containers: Object | None = None, init: Object | None = None, **more: Any) -> Object:
    """A pod whose containers, by name, are in these states."""

    def statuses(states: Object | None) -> list[Object]:
        return [{"name": k, "state": v, "ready": "running" in v, "restartCount": 0} for k, v in (states or {}).items()]

    status = {"phase": phase, "containerStatuses": statuses(containers), "initContainerStatuses": statuses(init)}
    names = [{"name": each} for each in containers or {"main": {}}]
    spec = {"containers": names, "initContainers": [{"name": each} for each in init or {}]}
    meta = {"name": "p", "creationTimestamp": "2026-01-01T11:55:00Z", **more.pop("metadata", {})}
    return {"metadata": meta, "spec": spec, "status": {**status, **more}}


RUNNING: Object = {"running": {}}


def _waiting(why: str) -> Object:
    return {"waiting": {"reason": why}}


def _ended(code: int = 0, **more: Any) -> Object:
    return {"terminated": {"exitCode": code, **more}}


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        (_pod("Pending"), "Pending"),
        (_pod("Pending", {"main": _waiting("ContainerCreating")}), "ContainerCreating"),
        (_pod(containers={"main": RUNNING}), "Running"),
        (_pod(containers={"main": _waiting("CrashLoopBackOff")}), "CrashLoopBackOff"),
        (_pod(containers={"main": _ended(1, reason="Error")}), "Error"),
        (_pod(containers={"main": _ended(137)}), "ExitCode:137"),
        (_pod(containers={"main": _ended(0, signal=9)}), "Signal:9"),
        (_pod("Succeeded", {"main": _ended(0, reason="Completed")}), "Completed"),
        (_pod("Failed", reason="Evicted"), "Evicted"),
        (_pod(containers={"a": RUNNING, "b": _ended(0, reason="Completed")}), "NotReady"),
        (
            _pod(
                containers={"a": RUNNING, "b": _ended(0, reason="Completed")},
                conditions=[{"type": "Ready", "status": "True"}],
            ),
            "Running",
        ),
        (_pod("Pending", {"main": _waiting("PodInitializing")}, {"i": RUNNING}), "Init:0/1"),
        (_pod("Pending", {"main": {}}, {"i": _ended(0), "j": RUNNING}), "Init:1/2"),
        (_pod("Pending", {"main": {}}, {"i": _waiting("CrashLoopBackOff")}), "Init:CrashLoopBackOff"),
        (_pod("Pending", {"main": {}}, {"i": _ended(1, reason="Error")}), "Init:Error"),
        (_pod("Pending", {"main": {}}, {"i": _ended(2)}), "Init:ExitCode:2"),
        (_pod("Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]), "SchedulingGated"),
        (_pod(containers={"main": RUNNING}, metadata={"deletionTimestamp": "x"}), "Terminating"),
        (_pod("Succeeded", {"main": _ended(reason="Completed")}, metadata={"deletionTimestamp": "x"}), "Completed"),
        (_pod(metadata={"deletionTimestamp": "x"}, reason="NodeLost"), "Unknown"),
    ],
)
def test_the_status_of_a_pod(pod: Object, wanted: str) -> None:
    assert reason(pod) == wanted


def test_restarts_say_when_the_last_one_was() -> None:
    pod = _pod(containers={"a": RUNNING, "b": _waiting("CrashLoopBackOff")})
    last = {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T11:59:00Z"}}
    pod["status"]["containerStatuses"][1] |= {"restartCount": 3, "lastState": last}
    shown = row("pods", pod)
    assert (shown["Ready"], shown["Restarts"], shown["Age"]) == ("1/2", "3 (60s ago)", "5m")


def test_a_sidecar_counts_as_a_container() -> None:
    pod = _pod(containers={"main": RUNNING}, init={"side": RUNNING})
    pod["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    pod["status"]["initContainerStatuses"][0]["started"] = True
    assert row("pods", pod)["Ready"] == "2/2"
    assert reason(pod) == "Running"


SPANS = """
-5 <invalid>, 0 0s, 119 119s, 120 2m, 125 2m5s, 599 9m59s, 600 10m, 10799 179m, 10800 3h, 11400 3h10m, 28800 8h,
172799 47h, 172800 2d, 180000 2d2h, 691200 8d, 63072000 2y, 66000000 2y33d, 300000000 9y
"""


@pytest.mark.parametrize("span", SPANS.split(","))
def test_durations(span: str) -> None:
    seconds, shown = span.split()
    assert duration(int(seconds)) == shown


NAMED = {"name": "x", "creationTimestamp": "2026-01-01T11:00:00Z"}


@pytest.mark.parametrize(
    ("resource", "obj", "wanted"),
    [
        (
            "nodes",
            {
                "metadata": {**NAMED, "labels": {"node-role.kubernetes.io/gpu": ""}},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "False"}], "nodeInfo": {"kubeletVersion": "v1"}},
            },
            {"Status": "NotReady,SchedulingDisabled", "Roles": "gpu", "Version": "v1", "Internal-IP": "<none>"},
        ),
        ("nodes", {"metadata": NAMED}, {"Status": "Unknown", "Roles": "<none>", "Age": "60m"}),
        (
            "jobs.batch",
            {
                "metadata": NAMED,
                "spec": {"completions": 3},
                "status": {
                    "succeeded": 3,
                    "startTime": "2026-01-01T11:00:00Z",
                    "completionTime": "2026-01-01T11:00:42Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            {"Status": "Complete", "Completions": "3/3", "Duration": "42s"},
        ),
        ("jobs.batch", {"metadata": NAMED, "spec": {"parallelism": 2}}, {"Completions": "0/1 of 2", "Duration": ""}),
        (
            "daemonsets.apps",
            {
                "metadata": NAMED,
                "spec": {"template": {"spec": {"nodeSelector": {"gpu": "on"}}}},
                "status": {"numberReady": 2},
            },
            {"Desired": 0, "Ready": 2, "Node Selector": "gpu=on"},
        ),
        ("replicasets.apps", {"metadata": NAMED, "spec": {"replicas": 3}}, {"Desired": 3, "Current": 0, "Ready": 0}),
        ("configmaps", {"metadata": NAMED, "data": {"a": ""}, "binaryData": {"b": ""}}, {"Data": 2, "Age": "60m"}),
        ("leases.coordination.k8s.io", {"metadata": NAMED, "spec": {"holderIdentity": "me"}}, {"Holder": "me"}),
        (
            "services",
            {
                "metadata": NAMED,
                "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 3000}], "clusterIP": "1.2.3.4"},
            },
            {"Type": "NodePort", "Cluster-IP": "1.2.3.4", "Port(s)": "80:3000/TCP"},
        ),
    ],
)
def test_rows(resource: str, obj: Object, wanted: Object) -> None:
    shown = row(resource, obj)
    assert {key: shown[key] for key in wanted} == wanted


def test_every_resource_has_a_table_and_a_bookmark_is_an_empty_row() -> None:
    for resource in Catalog():
        spec = {"containers": [], "replicas": 1}
        [full, empty] = tables.table(
            resource, [{"metadata": NAMED, "spec": spec}, {"metadata": {"resourceVersion": "5"}}], "Metadata", NOW, "1"
        )["rows"]
        assert len(full["cells"]) == len(empty["cells"])
        assert set(empty["cells"]) == {""}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.node", ["n1"]),
        (".spec.gpus[*].uuid", ["A", "B"]),
        (".spec.gpus[1].uuid", ["B"]),
        (".spec.gpus[-1].uuid", ["B"]),
        (".spec.gpus[9].uuid", []),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".metadata.labels.a\\.b/c", ["x"]),
        (".metadata.labels['a.b/c']", ["x"]),
        (".spec.missing.deeper", []),
        (".spec.gpus[*].healthy", [True, False]),
        ("no path", []),
    ],
)
def test_paths_of_printer_columns(path: str, found: list[Any]) -> None:
    obj = {
        "metadata": {"labels": {"a.b/c": "x"}},
        "spec": {"node": "n1", "gpus": [{"uuid": "A", "healthy": True}, {"uuid": "B", "healthy": False}]},
        "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
    }
    assert jsonpath.find(jsonpath.parse(path), obj) == found
