"""Admission does not change what a pod means: its request is the same before and after, and a second call of the
webhook changes nothing and refuses nothing, also when others have added containers in between.

Pods of every dialect with every kind of scheduler name, with annotations of every dialect next to them.
"""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lamina.admission.review import review
from lamina.configuration import DEFAULT, Config, load
from lamina.core.requests import PodRequest
from lamina.dialects import parse
from lamina.errors import BadInput
from tests.dialects.pods import Pod, container, pod

CONFIGS = (
    DEFAULT,
    load("hami: {defaultGPUNum: 3, schedulerName: mine}", "c"),
    load("apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nschedulers: {served: [lamina-scheduler]}", "c"),
    load("apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nschedulers: {assigned: lamina-scheduler}", "c"),
    load("apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nadmission: {runtimeClassName: nvidia}", "c"),
)
SCHEDULERS = (
    None,
    "",
    "default-scheduler",
    "hami-scheduler",
    "4pd-scheduler",
    "lamina-scheduler",
    "mine",
    "volcano",
    "kai-scheduler",
    "runai-scheduler",
    "theirs",
)
AMOUNTS = {
    "nvidia.com/gpu": ("0", "1", "2", 1, "0.5", "500m", "0.1"),
    "nvidia.com/gpumem": ("1000", "3Gi", 0),
    "nvidia.com/gpumem-percentage": ("50", "100"),
    "nvidia.com/gpucores": ("30", "0", "100"),
    "nvidia.com/cores": ("30", "0", "100"),
    "nvidia.com/mig-1g.5gb": ("1",),
    "volcano.sh/vgpu-number": ("1", "0"),
    "volcano.sh/vgpu-memory": ("2000",),
    "volcano.sh/vgpu-memory-percentage": ("50",),
    "lamina.dev/gpu-shares": ("1", "0"),
    "lamina.dev/gpu-percentage": ("20",),
    "cpu": ("1",),
}
ANNOTATIONS = {
    "gpu-memory": ("2000", "whatever"),
    "gpu-fraction": ("0.5", "x"),
    "gpu-memory-note": ("fits in 16 GB",),
    "gpu-fractions": ("0.5",),
    "gpu-fraction-num-devices": ("2",),
    "gpu-fraction-container-name": ("a", "b", "absent"),
    "nvidia.com/container.a.gpu-memory.request": ("4Gi",),
    "nvidia.com/container.b.gpu-memory.limit": ("4Gi",),
    "kubectl.kubernetes.io/default-container": ("b", "other"),
    "mps": ("true",),
    "nvidia.com/use-gputype": ("T4",),
    "nvidia.com/vgpu-mode": ("mig",),
    "hami.io/gpu-scheduler-policy": ("spread",),
    "volcano.sh/vgpu-mode": ("hami-core",),
    "lamina.dev/gpumem-limit": ("4000",),
    "lamina.dev/latency-class": ("true", "a"),
    "team": ("vision",),
}


@st.composite
def containers(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A container that requests nothing, or a few resources, by limits or by requests."""
    names = draw(st.lists(st.sampled_from(sorted(AMOUNTS)), max_size=2, unique=True))
    amounts = {each: draw(st.sampled_from(AMOUNTS[each])) for each in names}
    made: dict[str, Any] = {"name": name, "image": "x"}
    if amounts:
        field = draw(st.sampled_from([["limits"], ["limits"], ["requests"], ["limits", "requests"]]))
        made["resources"] = {each: dict(amounts) for each in field}
    return made


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    keys = draw(st.lists(st.sampled_from(sorted(ANNOTATIONS)), max_size=3, unique=True))
    spec: dict[str, Any] = {"containers": [draw(containers(name)) for name in draw(st.sampled_from(["a", "ab"]))]}
    if draw(st.integers(0, 3)) == 0:
        spec["initContainers"] = [draw(containers("i")) | draw(st.sampled_from([{}, {"restartPolicy": "Always"}]))]
    if (scheduler := draw(st.sampled_from(SCHEDULERS))) is not None:
        spec["schedulerName"] = scheduler
    metadata: dict[str, Any] = {"name": "pod", "namespace": "team"}
    if keys:
        metadata["annotations"] = {key: draw(st.sampled_from(ANNOTATIONS[key])) for key in keys}
    return {"metadata": metadata, "spec": spec}


def parsed(manifest: Pod, config: Config) -> PodRequest | str | None:
    """The request, or why it cannot be read."""
    try:
        return parse(manifest, config)
    except BadInput as problem:
        return str(problem)


def admitted(manifest: Pod, config: Config) -> Pod:
    """The pod after a call of the webhook, which must allow it."""
    verdict, _ = review(manifest, config)
    assert verdict.allowed, verdict.message
    after: Pod = jsonpatch.apply_patch(copy.deepcopy(manifest), list(verdict.patch))
    return after


def check(manifest: Pod, config: Config) -> None:
    verdict, _ = review(manifest, config)
    if not verdict.allowed:
        return
    after = admitted(manifest, config)
    assert parsed(after, config) == parsed(manifest, config)
    again, _ = review(after, config)
    assert again.allowed and not again.patch, "a second call changes nothing"
    proxied = copy.deepcopy(after)
    proxied["spec"]["containers"].insert(0, {"name": "istio-proxy", "image": "proxy"})
    once_more, _ = review(proxied, config)
    assert once_more.allowed and not once_more.patch, once_more.message
    if isinstance(request := parsed(proxied, config), PodRequest):
        assert request == parsed(manifest, config)


NOTE = pod(container(gpu=1, gpumem=1000), annotations={"gpu-memory-note": "fits in 16 GB"})
BOTH = pod(container(gpu=1, gpumem=1000), annotations={"gpu-memory": "2000"})
FRACTION = pod(container("train"), annotations={"gpu-fraction": "0.5"}, schedulerName="kai-scheduler")
ZERO = pod(
    container(**{"lamina.dev/gpu-shares": "0"}), annotations={"gpu-fraction": "0.5"}, schedulerName="kai-scheduler"
)


@settings(max_examples=400, deadline=None)
@given(pods(), st.sampled_from(CONFIGS))
@example(NOTE, DEFAULT)
@example(BOTH, DEFAULT)
@example(FRACTION, DEFAULT)
@example(ZERO, DEFAULT)
def test_a_pod_requests_the_same_before_and_after(manifest: Pod, config: Config) -> None:
    check(manifest, config)


@pytest.mark.parametrize("annotations", [NOTE, BOTH], ids=["a note", "an amount"])
def test_annotations_of_other_tools_do_not_keep_a_pod_from_its_share(annotations: Pod) -> None:
    after = admitted(annotations, DEFAULT)
    request = parse(after, DEFAULT)
    assert after["spec"]["schedulerName"] == "hami-scheduler"
    assert request is not None and request.dialect == "hami" and request.containers[0].memory_mib == 1000


def test_with_the_scheduler_of_kai_both_are_refused() -> None:
    both = copy.deepcopy(BOTH)
    both["spec"]["schedulerName"] = "kai-scheduler"
    assert "cannot be combined with annotation gpu-memory in one pod" in review(both, DEFAULT)[0].message
    note = copy.deepcopy(NOTE)
    note["spec"]["schedulerName"] = "kai-scheduler"
    assert review(note, DEFAULT)[0].allowed


@pytest.mark.parametrize("shown", [{}, {"kubectl.kubernetes.io/default-container": "train"}])
def test_the_container_of_a_fraction_stays_the_one_that_was_chosen(shown: dict[str, str]) -> None:
    manifest = copy.deepcopy(FRACTION)
    manifest["metadata"]["annotations"] |= shown
    if shown:
        manifest["spec"]["containers"].insert(0, {"name": "istio-proxy", "image": "proxy"})
    after = admitted(manifest, DEFAULT)
    after["spec"]["containers"].insert(0, {"name": "wait", "image": "x"})
    assert after["metadata"]["annotations"]["gpu-fraction-container-name"] == "train"
    request = parse(admitted(after, DEFAULT), DEFAULT)
    assert request is not None and [each.container for each in request.containers] == ["train"]
