"""How a share of compute is enforced: as its dialect says, or else the cluster, and never lent in some namespaces."""

from typing import Any

import pytest

from lamina.configuration import DEFAULT, Config, load
from lamina.core.requests import PodRequest
from lamina.dialects import lending_notice, parse
from tests.dialects.pods import container, pod

PODS: dict[str, dict[str, Any]] = {
    "hami": pod(container(**{"nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 30})),
    "volcano": pod(container(**{"volcano.sh/vgpu-memory": 1000, "volcano.sh/vgpu-cores": 30})),
    "cce": pod(container(**{"volcano.sh/gpu-mem.128Mi": 8, "volcano.sh/gpu-core.percentage": 30})),
    "kai": pod(container(), annotations={"gpu-fraction": "0.3"}),
}
PODS["kai"]["spec"]["schedulerName"] = "kai-scheduler"


def config(text: str) -> Config:
    return load(f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n{text}", "c")


def read(dialect: str, chosen: Config, namespace: str = "") -> PodRequest:
    manifest = PODS[dialect]
    metadata = {**manifest["metadata"], **({"namespace": namespace} if namespace else {})}
    request = parse({**manifest, "metadata": metadata}, chosen)
    assert request is not None and request.dialect == dialect
    return request


@pytest.mark.parametrize("dialect", PODS)
def test_by_default_all_lend_but_cces(dialect: str) -> None:
    assert read(dialect, DEFAULT).compute_policy == ("cap" if dialect == "cce" else "weight")


@pytest.mark.parametrize("dialect", PODS)
@pytest.mark.parametrize("policy", ["cap", "weight", "none"])
def test_a_dialect_has_its_own_policy_and_the_others_keep_theirs(dialect: str, policy: str) -> None:
    chosen = config(f"dialects: {{{dialect}: {{computePolicy: {policy}}}}}")
    assert read(dialect, chosen).compute_policy == policy
    for other in PODS.keys() - {dialect}:
        assert read(other, chosen).compute_policy == read(other, DEFAULT).compute_policy


def test_that_of_the_cluster_is_for_dialects_without_one() -> None:
    chosen = config("sharing: {computePolicy: cap}\ndialects: {volcano: {computePolicy: weight}}")
    assert [read(each, chosen).compute_policy for each in ("hami", "volcano", "kai")] == ["cap", "weight", "cap"]


@pytest.mark.parametrize(
    ("namespaces", "policy"), [("[team]", "cap"), ("['*']", "cap"), ("[other]", "weight"), ("[]", "weight")]
)
def test_a_namespace_can_have_caps(namespaces: str, policy: str) -> None:
    chosen = config(f"sharing: {{cappedNamespaces: {namespaces}}}")
    assert {read(each, chosen, "team").compute_policy for each in ("hami", "volcano", "kai")} == {policy}


def test_what_is_only_counted_is_no_cap_in_such_a_namespace_either() -> None:
    chosen = config("sharing: {computePolicy: none, cappedNamespaces: [team]}")
    assert read("hami", chosen, "team").compute_policy == "none"


def test_a_pod_without_a_namespace_is_in_the_default_one() -> None:
    assert read("hami", config("sharing: {cappedNamespaces: [default]}")).compute_policy == "cap"


@pytest.mark.parametrize("dialect", ["hami", "volcano", "kai"])
def test_who_gets_a_share_that_lends_learns_how_to_have_a_cap(dialect: str) -> None:
    notice = lending_notice(read(dialect, DEFAULT), DEFAULT)
    assert "30 % is a share that lends, not a cap" in notice
    assert f"GPU_CORE_UTILIZATION_POLICY=force in it, or sharing.cappedNamespaces or dialects.{dialect}." in notice


@pytest.mark.parametrize(
    "manifest",
    [
        pod(container(**{"nvidia.com/gpu": 1})),
        pod(container(**{"nvidia.com/gpumem": 1000})),
        pod(
            container(**{"nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 30}),
            annotations={"lamina.dev/gpucores-limit": "60"},
        ),
        PODS["cce"],
    ],
)
def test_who_has_no_share_that_lends_without_a_limit_hears_nothing(manifest: dict[str, Any]) -> None:
    request = parse(manifest, DEFAULT)
    assert request is not None and lending_notice(request, DEFAULT) == ""
