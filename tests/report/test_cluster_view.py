"""One reading of a cluster: what counts, what is left out, and that it explains as the controller decides."""

import logging

import pytest

from lamina.errors import BadInput
from lamina.ports.kube import CONFIG_MAPS, GRANTS, INVENTORIES, RESOURCE_QUOTAS, NotFound, Object, Resource
from lamina.ports.kube.fake import FakeKube
from lamina.report import cluster_reader
from lamina.report.cluster_view import ClusterView
from tests.worlds.clusters import cluster, container, grant, inventory, pod


def configured(text: str) -> Object:
    return {"metadata": {"name": "lamina", "namespace": "lamina-system"}, "data": {"lamina.yaml": text}}


def quota(**hard: str) -> Object:
    named = {f"limits.nvidia.com/{key}": amount for key, amount in hard.items()}
    return {"metadata": {"name": "team", "namespace": "default"}, "spec": {"hard": named}}


def summary(view: ClusterView, of: Object) -> str:
    explanation = view.explain(of)
    assert explanation is not None
    return explanation.summary


@pytest.mark.parametrize("missing", [INVENTORIES, GRANTS])
async def test_a_cluster_without_lamina_is_one_sentence(missing: Resource) -> None:
    kube = FakeKube()
    kube.failing["list"] = lambda resource, name: NotFound("no such kind") if resource == missing else None
    with pytest.raises(BadInput, match=r"^Lamina is not installed in this cluster: .* see `lamina install`$"):
        await cluster_reader.read(kube)


async def test_an_empty_cluster_has_nothing_and_the_default_configuration() -> None:
    view = await cluster_reader.read(FakeKube())
    assert (view.pods, dict(view.grants), dict(view.inventories)) == ([], {}, {})
    assert view.config == cluster_reader.configuration.DEFAULT


async def test_the_configuration_is_the_one_of_the_cluster() -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, configured("hami: {resourceCountName: example.com/share}\n"))
    asking = pod("p", {"name": "main", "resources": {"limits": {"example.com/share": "1"}}})
    assert (await cluster_reader.read(kube)).explain(asking) is not None
    assert (await cluster_reader.read(FakeKube())).explain(asking) is None


async def test_a_configuration_that_is_refused_is_named() -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, configured("nonsense: 1\n"))
    view = await cluster_reader.read(kube)
    assert view.config == cluster_reader.configuration.DEFAULT
    assert view.config_refusal.startswith("ConfigMap lamina-system/lamina: unknown key nonsense")


async def test_objects_that_cannot_be_read_are_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    runs = pod("runs", container(gpumem=1000), node="n")
    kube = await cluster(inventory("n"), inventory("broken"), runs, grant(runs, "n", 1000))
    await kube.patch(INVENTORIES, "broken", {"spec": {"gpus": 7}})
    await kube.create(GRANTS, {"metadata": {"name": "empty", "namespace": "default"}, "spec": {}})
    with caplog.at_level(logging.WARNING):
        view = await cluster_reader.read(kube)
    assert list(view.inventories) == ["n"] and list(view.grants) == ["uid-default-runs"]
    said = ["inventory broken cannot be read", "grant default/empty cannot be read"]
    assert len(caplog.messages) == 2
    assert all(start in message for start, message in zip(said, caplog.messages, strict=True))


async def test_a_grant_counts_while_its_pod_exists() -> None:
    runs, gone = pod("runs", container(gpumem=1000), node="n"), pod("gone", node="n")
    kube = await cluster(inventory("n"), runs, grant(runs, "n", 1000), grant(gone, "n", 5000))
    view = await cluster_reader.read(kube)
    assert view.ledger.totals.taken("n")["GPU-n-0"].memory_mib == 1000
    assert set(view.grants) == {"uid-default-runs", "uid-default-gone"}


async def test_what_running_pods_hold_is_not_free() -> None:
    runs = pod("runs", container(gpu=1, gpumem=15000), node="n")
    waits = pod("waits", container(gpu=1, gpumem=1000))
    view = await cluster_reader.read(await cluster(inventory("n"), runs, waits, grant(runs, "n", 15000)))
    assert "needs 1000 MiB" in summary(view, waits)
    alone = await cluster_reader.read(await cluster(inventory("n"), waits))
    explanation = alone.explain(waits)
    assert explanation is not None and explanation.fitting


async def test_a_pod_with_a_grant_is_explained_without_its_own_share() -> None:
    placed = pod("placed", container(gpu=1, gpumem=15000))
    view = await cluster_reader.read(await cluster(inventory("n"), placed, grant(placed, "n", 15000)))
    explanation = view.explain(placed)
    assert explanation is not None and explanation.fitting


async def test_a_pod_without_gpus_has_no_explanation() -> None:
    view = await cluster_reader.read(await cluster(inventory("n")))
    assert view.explain(pod("p", container())) is None


async def test_pods_that_ask_the_same_share_one_search() -> None:
    view = await cluster_reader.read(await cluster(inventory("n")))
    first, second = (view.explain(pod(name, container(gpu=1, gpumem=1000))) for name in "ab")
    assert first is second
    assert view.explain(pod("c", container(gpu=1, gpumem=1001))) is not first


async def test_pods_that_count_other_amounts_of_native_devices_are_explained_apart() -> None:
    view = await cluster_reader.read(await cluster(inventory("n", gpus=0, gpu=1, mig_1g_5gb=2)))
    fits, lacks = (view.explain(pod(f"p{amount}", container(gpu=1, mig_1g_5gb=amount))) for amount in (2, 3))
    assert fits is not None and fits.fitting
    assert lacks is not None and "needs 3 nvidia.com/mig-1g.5gb; this node offers 2" in lacks.summary


@pytest.mark.parametrize(
    ("hard", "asked", "over"),
    [
        ({}, {"gpumem": 1000}, ""),
        ({"gpumem": "3000"}, {"gpumem": 1000}, ""),
        ({"gpumem": "2000"}, {"gpumem": 1000}, ""),
        ({"gpumem": "1999"}, {"gpumem": 1000}, "1999"),
        ({"gpucores": "30"}, {"gpumem": 1000, "gpucores": 30}, ""),
        ({"gpucores": "29"}, {"gpumem": 1000, "gpucores": 30}, "29"),
    ],
)
async def test_quotas_count_what_the_namespace_holds(hard: dict[str, str], asked: dict[str, int], over: str) -> None:
    runs = pod("runs", container(gpu=1, gpumem=1000), node="n")
    kube = await cluster(inventory("n"), runs, grant(runs, "n", 1000))
    await kube.create(RESOURCE_QUOTAS, quota(**hard))
    view = await cluster_reader.read(kube)
    said = view.rules.refused_everywhere(view.parse(pod("p", container(gpu=1, **asked))))
    assert bool(said) == bool(over) and over in said
    elsewhere = view.parse(pod("p", container(gpu=1, **asked), namespace="other"))
    assert view.rules.refused_everywhere(elsewhere) == ""


async def test_a_pod_that_admission_would_refuse_is_refused_here() -> None:
    view = await cluster_reader.read(await cluster(inventory("n")))
    wrong = pod("p", container(gpumem=-1))
    assert "nvidia.com/gpumem must be an integer" in view.rules.refused_everywhere(view.parse(wrong))
    for ask in (view.explain, view.request, view.bounded):
        with pytest.raises(BadInput, match=r"nvidia\.com/gpumem must be an integer"):
            ask(wrong)


async def test_a_quota_that_does_not_count_devices_forbids_them() -> None:
    kube = await cluster(inventory("n", gpus=0, gpu=2))
    await kube.create(RESOURCE_QUOTAS, quota(gpumem="100000"))
    view = await cluster_reader.read(kube)
    asks = pod("p", container(gpu=1))
    assert "add requests.nvidia.com/gpu to a quota of this namespace" in summary(view, asks)
    elsewhere = view.explain(pod("p", container(gpu=1), namespace="other"))
    assert elsewhere is not None and elsewhere.fitting
    counting = {"requests.nvidia.com/gpu": "1"}
    await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "n", "namespace": "default"}, "spec": {"hard": counting}})
    explanation = (await cluster_reader.read(kube)).explain(asks)
    assert explanation is not None and explanation.fitting
