"""Pods and workloads that are refused, in Kubernetes' words, and those that are not."""

import copy
import re
from typing import Any

import pytest

from lamina.ports.kube import Object
from lamina_lab.api.printing import tables
from lamina_lab.kubernetes.errors import ApiError
from tests.lab_api.apis import Bench


def _pod(**container: Any) -> Object:
    return {"spec": {"containers": [{"name": "main", "image": "i:1", **container}]}}


def _limits(**amounts: Any) -> Object:
    return _pod(resources={"limits": amounts})


def _gpu(amount: Any, request: Any = None) -> Object:
    requests = {} if request is None else {"requests": {"nvidia.com/gpu": request}}
    return _pod(resources={"limits": {"nvidia.com/gpu": amount}, **requests})


GPU = "spec.containers[0].resources.limits[nvidia.com/gpu]"


@pytest.mark.parametrize(
    ("body", "code", "wanted"),
    [
        ({"spec": {}}, 422, "spec.containers: Required value"),
        ({}, 422, "spec.containers: Required value"),
        ({"spec": {"containers": "x"}}, 400, "cannot unmarshal"),
        ({"spec": []}, 400, "cannot unmarshal array into Go struct field Pod.spec"),
        (_pod(image=""), 422, "spec.containers[0].image: Required value"),
        (_pod(name="A"), 422, 'spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label'),
        (_pod(name=None), 422, "spec.containers[0].name: Required value"),
        ({"spec": {"containers": [{"name": "a", "image": "i"}] * 2}}, 422, 'containers[1].name: Duplicate value: "a"'),
        ({"spec": {**_pod()["spec"], "restartPolicy": "Never!"}}, 422, 'restartPolicy: Unsupported value: "Never!"'),
        (_pod(env=[{"name": "A", "value": 1}]), 400, "cannot unmarshal number"),
        (_pod(env=[{"value": "x"}]), 422, "spec.containers[0].env[0].name: Required value"),
        (_pod(volumeMounts=[{"name": "v", "mountPath": "/x"}]), 422, 'volumeMounts[0].name: Not found: "v"'),
        (_gpu("0.5"), 422, f'{GPU}: Invalid value: "0.5": must be an integer'),
        (_gpu("500m"), 422, f'{GPU}: Invalid value: "500m": must be an integer'),
        (_gpu(-1), 422, f'{GPU}: Invalid value: "-1": must be greater than or equal to 0'),
        (_gpu("many"), 400, "quantities must match the regular expression"),
        (_gpu(True), 400, "cannot unmarshal bool into Go struct field ResourceRequirements."),
        (_gpu(1, request=2), 422, 'requests: Invalid value: "2": must be equal to nvidia.com/gpu limit of 1'),
        (
            _pod(resources={"requests": {"nvidia.com/gpu": 1}}),
            422,
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (_limits(gpu=1), 422, "must be a standard resource type or fully qualified"),
        (
            _pod(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}),
            422,
            'requests: Invalid value: "1500m": must be less than or equal to cpu limit of 1',
        ),
    ],
)
async def test_pods_that_are_refused(bench: Bench, body: Object, code: int, wanted: str) -> None:
    with pytest.raises(ApiError, match=re.escape(wanted)) as refused:
        await bench.create("pods", {"metadata": {"name": "x"}, **copy.deepcopy(body)})
    assert refused.value.code == code
    assert bench.names("pods") == []


@pytest.mark.parametrize("amount", [1, "1", 0, "2k", "1000m", "1e1", 10.0])
async def test_whole_amounts_in_any_spelling_are_accepted(bench: Bench, amount: Any) -> None:
    made = await bench.create("pods", {"metadata": {"name": "x"}, **_gpu(amount)})
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": amount}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"limits": {"nvidia.com/gpu": 1}}, "BestEffort"),
        ({"requests": {"cpu": "100m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m"}}, "Guaranteed"),
    ],
)
async def test_quality_of_service(bench: Bench, resources: Object, quality: str) -> None:
    made = await bench.create("pods", {"metadata": {"name": "x"}, **_pod(resources=resources)})
    assert made["status"]["qosClass"] == quality


async def test_several_faults_are_reported_together(bench: Bench) -> None:
    with pytest.raises(ApiError) as refused:
        await bench.create("pods", {"metadata": {"name": "X"}, **_pod(image="", env=[{}])})
    fields = [each["field"] for each in refused.value.details["causes"]]
    assert fields == ["metadata.name", "spec.containers[0].image", "spec.containers[0].env[0].name"]
    assert refused.value.message.startswith('Pod "X" is invalid: [metadata.name: Invalid value')


async def test_a_pods_spec_is_settled_but_for_images_and_more_tolerations(bench: Bench) -> None:
    pod = await bench.create("pods", {"metadata": {"name": "x"}, **_pod()})
    tolerations = [*pod["spec"]["tolerations"], {"key": "gpu", "operator": "Exists"}]
    containers = [{**pod["spec"]["containers"][0], "image": "i:2"}]
    await bench.patch("pods", "x", {"spec": {"containers": containers, "tolerations": tolerations}})
    for change in (
        {"nodeName": "n1"},
        {"containers": [{**containers[0], "env": [{"name": "A"}]}]},
        {"tolerations": []},
    ):
        with pytest.raises(ApiError, match="Forbidden"):
            await bench.patch("pods", "x", {"spec": change})


def _workload(**spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    return {
        "metadata": {"name": "x"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


@pytest.mark.parametrize("kind", ["deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"])
@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"selector": {"matchLabels": {"app": "db"}}}, "`selector` does not match template `labels`"),
        ({"template": {"metadata": {"labels": {"app": "web"}}}}, "spec.template.spec.containers: Required value"),
    ],
)
async def test_workloads_that_are_refused(bench: Bench, kind: str, spec: Object, wanted: str) -> None:
    with pytest.raises(ApiError, match=re.escape(wanted)):
        await bench.create(kind, _workload(**spec))


@pytest.mark.parametrize("kind", ["deployments.apps", "replicasets.apps", "statefulsets.apps"])
async def test_fewer_than_no_replicas_are_refused(bench: Bench, kind: str) -> None:
    with pytest.raises(ApiError, match="replicas: Invalid value: -1: must be greater than or equal to 0"):
        await bench.create(kind, _workload(replicas=-1))


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"completionMode": "Indexed", "parallelism": 2}, "spec.completions: Required value: when completion mode is"),
        ({"completionMode": "Indexed", "parallelism": 1}, "spec.completions: Required value: when completion mode is"),
        ({"completionMode": "All"}, 'spec.completionMode: Unsupported value: "All": supported values: "Indexed"'),
        ({"completions": -1}, "spec.completions: Invalid value: -1: must be greater than or equal to 0"),
    ],
)
async def test_jobs_that_are_refused(bench: Bench, spec: Object, wanted: str) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Never"}}
    with pytest.raises(ApiError, match=re.escape(wanted)):
        await bench.create("jobs.batch", {"metadata": {"name": "x"}, "spec": {"template": template, **spec}})


@pytest.mark.parametrize(
    ("spec", "parallelism", "completions"),
    [({}, 1, 1), ({"completions": 3}, 1, 3), ({"parallelism": 1}, 1, None), ({"parallelism": 2}, 2, None)],
)
async def test_how_many_pods_a_job_has_that_does_not_say_it(
    bench: Bench, spec: Object, parallelism: int, completions: int | None
) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Never"}}
    made = await bench.create("jobs.batch", {"metadata": {"name": "x"}, "spec": {"template": template, **spec}})
    assert (made["spec"]["parallelism"], made["spec"].get("completions")) == (parallelism, completions)


async def test_a_deployment_keeps_its_selector(bench: Bench) -> None:
    made = await bench.create("deployments.apps", _workload())
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": "25%", "maxSurge": "25%"}
    with pytest.raises(ApiError, match="field is immutable"):
        labels = {"app": "db"}
        template = {**made["spec"]["template"], "metadata": {"labels": labels}}
        await bench.patch(
            "deployments.apps", "x", {"spec": {"selector": {"matchLabels": labels}, "template": template}}
        )


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"podManagementPolicy": "Random"}, "must be 'OrderedReady' or 'Parallel'"),
        ({"updateStrategy": {"type": "Recreate"}}, "must be 'RollingUpdate' or 'OnDelete'"),
        (
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
            "spec.updateStrategy.rollingUpdate: Invalid value: only allowed for updateStrategy 'RollingUpdate'",
        ),
        ({"updateStrategy": {"rollingUpdate": {"partition": -1}}}, "partition: Invalid value: -1: must be greater"),
        ({"ordinals": {"start": -1}}, "spec.ordinals.start: Invalid value: -1: must be greater"),
        (
            {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]},
            "spec.volumeClaimTemplates: Forbidden: the lab has no PersistentVolumes; use an emptyDir",
        ),
    ],
)
async def test_stateful_sets_that_are_refused(bench: Bench, spec: Object, wanted: str) -> None:
    with pytest.raises(ApiError, match=re.escape(wanted)):
        await bench.create("statefulsets.apps", _workload(**spec))


async def test_a_stateful_set_keeps_what_its_pods_are_known_by(bench: Bench) -> None:
    made = await bench.create("statefulsets.apps", _workload(serviceName="db"))
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0, "maxUnavailable": 1}
    await bench.patch("statefulsets.apps", "x", {"spec": {"replicas": 3, "minReadySeconds": 5}})
    for spec in ({"serviceName": "other"}, {"podManagementPolicy": "Parallel"}):
        with pytest.raises(ApiError, match="updates to statefulset spec for fields other than 'replicas', 'ordinals'"):
            await bench.patch("statefulsets.apps", "x", {"spec": spec})


async def test_a_job_needs_a_policy_that_ends(bench: Bench) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    with pytest.raises(ApiError, match='restartPolicy: Unsupported value: "Always"'):
        await bench.create("jobs.batch", {"metadata": {"name": "x"}, "spec": {"template": template}})


JOB: Object = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"schedule": ""}, "spec.schedule: Required value"),
        ({"schedule": "daily"}, 'spec.schedule: Invalid value: "daily": expected exactly 5 fields, found 1: [daily]'),
        ({"schedule": "TZ=UTC 0 * * * *"}, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        ({"timeZone": "Mars/Base"}, 'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base'),
        ({"timeZone": "local"}, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"),
        ({"timeZone": ""}, "timeZone must be nil or non-empty string"),
        ({"timeZone": "../etc/passwd"}, "unknown time zone ../etc/passwd"),
        ({"concurrencyPolicy": "Never"}, 'Unsupported value: "Never": supported values: "Allow", "Forbid", "Replace"'),
        ({"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds: Invalid value: -1: must be greater"),
        ({"jobTemplate": {"spec": {"template": {}}}}, "spec.jobTemplate.spec.template.spec.containers: Required"),
    ],
)
async def test_cron_jobs_that_are_refused(bench: Bench, spec: Object, wanted: str) -> None:
    whole = {"schedule": "0 * * * *", "jobTemplate": {"spec": JOB}, **copy.deepcopy(spec)}
    with pytest.raises(ApiError, match=re.escape(wanted)):
        await bench.create("cronjobs.batch", {"metadata": {"name": "x"}, "spec": whole})


async def test_the_jobs_of_a_cron_job_have_room_for_their_names(bench: Bench) -> None:
    spec = {"schedule": "@daily", "jobTemplate": {"spec": JOB}}
    made = await bench.create("cronjobs.batch", {"metadata": {"name": "a" * 52}, "spec": copy.deepcopy(spec)})
    assert (made["spec"]["concurrencyPolicy"], made["spec"]["successfulJobsHistoryLimit"]) == ("Allow", 3)
    with pytest.raises(ApiError, match="must be no more than 52 characters"):
        await bench.create("cronjobs.batch", {"metadata": {"name": "a" * 53}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, "spec.group: Required value"),
        ({"group": "other.com"}, "must be spec.names.plural"),
        ({"scope": "Everywhere"}, 'spec.scope: Unsupported value: "Everywhere"'),
        ({"versions": [{"name": "v1"}]}, "must have exactly one version marked as storage version"),
        ({"versions": [{"name": "v1", "storage": True}]}, "schemas are required"),
    ],
)
async def test_definitions_that_are_refused(bench: Bench, spec: Object, wanted: str) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    names = {"plural": "shares", "kind": "Share"}
    whole = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    body = {"metadata": {"name": "shares.example.com"}, "spec": {**whole, **spec} if spec else {}}
    with pytest.raises(ApiError, match=re.escape(wanted)):
        await bench.create("customresourcedefinitions.apiextensions.k8s.io", body)


GOOD: dict[str, Object] = {
    "pods": _pod(
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        ports=[{"containerPort": 80}],
        resources={"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}},
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
        livenessProbe={"exec": {"command": ["true"]}},
    )["spec"]
    | {"volumes": [{"name": "v", "configMap": {"name": "c"}}], "tolerations": [{"key": "a"}]},
    "deployments.apps": _workload(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})["spec"],
    "statefulsets.apps": _workload(ordinals={"start": 1}, updateStrategy={"rollingUpdate": {"partition": 1}})["spec"],
    "daemonsets.apps": _workload(updateStrategy={"type": "OnDelete"})["spec"],
    "jobs.batch": JOB,
    "cronjobs.batch": {"schedule": "*/5 * * * *", "timeZone": "UTC", "jobTemplate": {"spec": JOB}},
    "services": {"ports": [{"port": 80}]},
    "customresourcedefinitions.apiextensions.k8s.io": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "x", "kind": "Share", "shortNames": ["s"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
            }
        ],
    },
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in _places(each, (*path, key)))]


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copied = copy.copy(value)
    copied[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copied


@pytest.mark.parametrize("kind", GOOD)
async def test_invalid_values_are_refused_or_stored_and_never_crash_the_server(kind: str) -> None:
    """Every value of a good object is replaced by values of every other type, one at a time."""
    for place in _places(GOOD[kind]):
        for nonsense in (None, True, -1, 0.5, "x", [], [1], ["x"], [None], {}, {"x": 1}):
            bench = Bench()
            spec = _replaced(GOOD[kind], place, nonsense)
            name = "x.example.com" if "." in kind and "custom" in kind else "x"
            try:
                made = await bench.create(kind, {"metadata": {"name": name}, "spec": spec})
                tables.table(bench.resource(kind), [made], "Object", bench.now, "1")
                await bench.patch(kind, name, {"metadata": {"labels": {"a": "b"}}})
            except ApiError as error:
                assert error.code in (400, 422), (place, nonsense, error)
