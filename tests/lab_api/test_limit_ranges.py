"""LimitRanges: what containers get, what is refused in the words of Kubernetes, and what a range may not say."""

import re
from typing import Any

import pytest

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import ApiError
from lamina_lab.kubernetes.quantities import canonical, parse
from tests.lab_api.apis import Bench

GPU = "nvidia.com/gpu"


async def range_of(bench: Bench, *items: Object, name: str = "limits", namespace: str = "default") -> Object:
    return await bench.create("limitranges", {"metadata": {"name": name}, "spec": {"limits": list(items)}}, namespace)


def container(name: str = "main", **resources: Any) -> Object:
    return {"name": name, "image": "i:1", "resources": resources}


async def pod(bench: Bench, *containers: Object, **spec: Any) -> Object:
    return await bench.create("pods", {"metadata": {"name": "x"}, "spec": {"containers": list(containers), **spec}})


async def refusal(bench: Bench, *containers: Object, **spec: Any) -> str:
    with pytest.raises(ApiError) as refused:
        await pod(bench, *containers, **spec)
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
    assert bench.names("pods") == []
    return refused.value.message.removeprefix('pods "x" is forbidden: ')


async def test_containers_get_defaults_and_an_annotation_says_so(bench: Bench) -> None:
    item = {"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "250m"}}
    await range_of(bench, item)
    made = await pod(bench, container(), container("own", limits={"cpu": "2"}), initContainers=[container("first")])
    main, own = (each["resources"] for each in made["spec"]["containers"])
    assert main == {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "1Gi"}}
    assert own == {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}}
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container main; "
        "cpu, memory limit for container main; memory request for container own; memory limit for container own; "
        "cpu, memory request for init container first; cpu, memory limit for init container first"
    }
    assert made["status"]["qosClass"] == "Burstable"


async def test_other_namespaces_and_pods_of_before_are_left_alone(bench: Bench) -> None:
    await pod(bench, container(limits={"cpu": "4"}))
    await range_of(bench, {"type": "Container", "max": {"cpu": "1"}})
    await bench.patch("pods", "x", {"metadata": {"labels": {"a": "b"}}})
    body = {"metadata": {"name": "x"}, "spec": {"containers": [container(limits={"cpu": "4"})]}}
    await bench.create("pods", body, "kube-public")


async def test_the_maximum_is_the_default_and_the_minimum_the_default_request(bench: Bench) -> None:
    made = await range_of(bench, {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Gi"}})
    [item] = made["spec"]["limits"]
    assert (item["default"], item["defaultRequest"]) == ({"cpu": "2"}, {"cpu": "2", "memory": "1Gi"})


@pytest.mark.parametrize(
    ("item", "resources", "wanted"),
    [
        (
            {"max": {"cpu": "800m"}},
            {"limits": {"cpu": "1500m"}},
            "maximum cpu usage per Container is 800m, but limit is 1500m",
        ),
        (
            {"max": {"memory": "512Mi"}},
            {"limits": {"memory": "800M"}},
            "maximum memory usage per Container is 512Mi, but limit is 800M",
        ),
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}, "limits": {"cpu": "2000m"}},
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            {"max": {GPU: 1}, "default": {GPU: 0}},
            {"limits": {GPU: 2}},
            f"maximum {GPU} usage per Container is 1, but limit is 2",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": 2}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": 2}},
            {"requests": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": 2}},
            {},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
    ],
)
async def test_containers_that_are_refused(bench: Bench, item: Object, resources: Object, wanted: str) -> None:
    await range_of(bench, {"type": "Container", **item})
    assert await refusal(bench, container(**resources)) == wanted
    init = [container("first", **resources)]
    within = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}} if "cpu" in wanted and "800m" not in wanted else {}
    assert await refusal(bench, container(**within), initContainers=init) == wanted


async def test_several_bounds_are_reported_together_and_once(bench: Bench) -> None:
    await range_of(bench, {"type": "Container", "max": {"cpu": "2"}}, {"type": "Pod", "max": {"cpu": "4"}})
    big = {"limits": {"cpu": "3"}}
    assert await refusal(bench, container(**big), container("b", **big)) == (
        "[maximum cpu usage per Container is 2, but limit is 3, maximum cpu usage per Pod is 4, but limit is 6]"
    )
    await pod(bench, container(limits={"cpu": "2"}), container("b", limits={"cpu": "2000m"}))


async def test_a_pod_is_the_sum_of_its_containers_or_its_largest_init_container(bench: Bench) -> None:
    await range_of(bench, {"type": "Pod", "max": {"memory": "2Gi"}, "min": {"cpu": "100m"}})
    assert await refusal(bench, container()) == (
        "[minimum cpu usage per Pod is 100m.  No request is specified, "
        "maximum memory usage per Pod is 2Gi.  No limit is specified]"
    )
    small = {"limits": {"cpu": "50m", "memory": "1Gi"}}
    large = [container("first", limits={"cpu": "1", "memory": "3Gi"})]
    wanted = "maximum memory usage per Pod is 2Gi, but limit is 3Gi"
    assert await refusal(bench, container(**small), initContainers=large) == wanted
    await pod(bench, container(**small), container("b", **small))


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        ([{"type": "Node"}], 'spec.limits[0].type: Invalid value: "Node": must be a standard limit type'),
        ([{"type": "Pod"}, {"type": "Pod"}], 'spec.limits[1].type: Duplicate value: "Pod"'),
        ([{"type": "Pod", "default": {"cpu": 1}}], "spec.limits[0].default: Forbidden: may not be specified when"),
        (
            [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}],
            'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        ),
        (
            [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1100m"}}],
            'defaultRequest[cpu]: Invalid value: "1100m": default request value 1100m is greater than default limit',
        ),
        (
            [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "2"}}],
            'default[cpu]: Invalid value: "2": default value 2 is greater than max value 1',
        ),
        (
            [{"type": "Container", "default": {GPU: 2}, "defaultRequest": {GPU: 1}}],
            f"default value 2 must equal to defaultRequest value 1 in {GPU}",
        ),
        ([{"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}}], "ratio 500m is less than 1"),
        ([{"type": "Pod", "max": {"cpu": "much"}}], "quantities must match the regular expression"),
    ],
)
async def test_ranges_that_are_refused(bench: Bench, items: list[Object], wanted: str) -> None:
    with pytest.raises(ApiError, match=re.escape(wanted)):
        await range_of(bench, *items)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("1500m", "1500m"), ("2000m", "2"), ("1024Mi", "1Gi"), ("10000", "10k"), ("0.5Gi", "512Mi"), ("0", "0"), (3, "3")],
)
def test_quantities_are_written_as_kubernetes_does(text: Any, wanted: str) -> None:
    value = parse(text)
    assert value is not None
    assert canonical(value, text) == wanted
