"""Bind, step by step: what is written, what is undone, what is left alone."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.configuration import load
from lamina.controller import compatibility
from lamina.controller.binding import orphan_grants
from lamina.controller.binding.binder import MAX_ATTEMPT_S
from lamina.errors import Outside
from lamina.ledger.holds import Why
from lamina.ledger.ledger import UNCONFIRMED_S
from lamina.ledger.pod_stages import PodState, Stage
from lamina.ports.kube import GRANTS, PODS, Conflict, Kube, NotFound, Object, Refused, Unreachable
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.fake_network import LossyKube
from tests.controller.binders import Bench
from tests.worlds.objects import admitted_pod, gpu_pod, gpus


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.offer()
    return made


def failing(bench: Bench, verb: str, error: Outside) -> None:
    assert isinstance(bench.kube, FakeKube)
    bench.kube.failing[verb] = lambda resource, name: error


def repaired(bench: Bench) -> None:
    assert isinstance(bench.kube, FakeKube)
    bench.kube.failing.clear()


def changing(change: Callable[[Kube], Awaitable[object]], *, times: int = 1) -> Bench:
    """A bench whose pod is changed by others just before each of the first `times` bindings is written."""

    class Hasty(FakeKube):
        left = times

        async def bind(self, pod: str, **about: Any) -> None:
            if self.left:
                self.left -= 1
                await change(self)
            await super().bind(pod, **about)

    bench = Bench(Hasty())
    bench.offer()
    return bench


async def report(bench: Bench, pod: Object) -> None:
    """The watch reports the pod as it is."""
    bench.context.pending.observe(bench.parse(pod))


async def test_the_grant_says_what_the_pod_got_and_goes_with_it(bench: Bench) -> None:
    pod = await bench.pod(gpu=2, gpumem=1000, gpucores=20)
    assert await bench.bind(pod) == ""
    (grant,) = await bench.grants()
    assert grant["metadata"]["name"] == f"pod-{pod['metadata']['uid'][:8]}"
    (owner,) = grant["metadata"]["ownerReferences"]
    assert owner["uid"] == pod["metadata"]["uid"] and owner["blockOwnerDeletion"] is False
    spec = grant["spec"]
    assert (spec["pod"], spec["podUID"], spec["node"], spec["dialect"]) == ("pod", owner["uid"], "node-0", "hami")
    shares = [(s["gpu"], s["memoryMiB"], s["cores"], s["mode"]) for s in spec["containers"][0]["shares"]]
    assert sorted(shares) == [("GPU-0", 1000, 20, "quota"), ("GPU-1", 1000, 20, "quota")]
    assert await bench.node_of(pod) == "node-0" and bench.memory() == 1000
    await bench.kube.delete(PODS, "pod", namespace="default")
    assert await bench.grants() == []


async def test_the_annotations_of_hami_are_on_the_pod(bench: Bench) -> None:
    pod = admitted_pod(gpumem=3000, gpucores=30)
    pod["spec"]["containers"].insert(0, {"name": "first", "image": "x"})
    pod = await bench.kube.create(PODS, pod)
    await bench.bind(pod)
    (share,) = (await bench.grants())[0]["spec"]["containers"][0]["shares"]
    meta = (await bench.kube.get(PODS, "pod", namespace="default"))["metadata"]
    devices = f";{share['gpu']},NVIDIA,3000,30:;"
    assert meta["annotations"] == {
        "hami.io/vgpu-node": "node-0",
        "hami.io/vgpu-devices-to-allocate": devices,
        "hami.io/vgpu-devices-allocated": devices,
        "hami.io/vgpu-time": "1700000000",
        "hami.io/bind-time": "1700000000",
        "hami.io/bind-phase": "success",
    }
    assert meta["labels"] == {"hami.io/vgpu-node": "node-0"}


def count_of(bench: Bench, verb: str) -> int:
    return sum(called == verb and resource == PODS for called, resource, _ in bench.kube.calls)  # type: ignore[attr-defined]


async def test_labels_that_a_server_does_not_copy_are_patched(bench: Bench) -> None:
    bench.kube.copies_labels = False  # type: ignore[attr-defined]
    for name in ("one", "two"):
        assert await bench.bind(await bench.pod(name, gpumem=1000)) == ""
        meta = (await bench.kube.get(PODS, name, namespace="default"))["metadata"]
        assert meta["labels"] == {"hami.io/vgpu-node": "node-0"}
        assert meta["annotations"]["hami.io/bind-phase"] == "success"


async def test_labels_that_a_server_copies_are_not_patched(bench: Bench) -> None:
    for name in ("one", "two", "three"):
        assert await bench.bind(await bench.pod(name, gpumem=1000)) == ""
    assert count_of(bench, "patch") == 0


async def test_a_server_that_stops_copying_labels_is_noticed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "EVERY", 2)
    for number, copies in enumerate((True, True, False)):
        bench.kube.copies_labels = copies  # type: ignore[attr-defined]
        assert await bench.bind(await bench.pod(f"p{number}", gpumem=1000)) == ""
    assert count_of(bench, "patch") == 1


async def test_labels_that_cannot_be_written_change_nothing(bench: Bench) -> None:
    bench.kube.copies_labels = False  # type: ignore[attr-defined]
    failing(bench, "patch", Refused("no"))
    pod = await bench.pod(gpu=1)
    assert await bench.bind(pod) == "" and await bench.node_of(pod) == "node-0"


_FOREIGN = (
    "pod default/pod names the scheduler mine, which Lamina does not serve; if that one uses the extender of Lamina, "
    "add its name to schedulers.served in the configuration"
)
_NO_GPU = "pod default/pod requests no GPU; bind it without the extender of Lamina"


@pytest.mark.parametrize("node", ["", "node-0"])
@pytest.mark.parametrize(
    ("scheduler", "limits", "why"),
    [
        ("", {}, _NO_GPU),
        ("hami-scheduler", {}, _NO_GPU),
        ("mine", {}, _FOREIGN),
        ("mine", {"gpu": 1, "gpumem": 1000}, _FOREIGN),
        ("mine", {"gpumem": -1}, _FOREIGN),
    ],
)
async def test_a_pod_that_lamina_does_not_place_is_not_bound(
    bench: Bench, scheduler: str, limits: dict[str, int], why: str, node: str
) -> None:
    """kube-scheduler never asks for it. A client that does could bind any pod anywhere, past taints."""
    pod = gpu_pod(scheduler=scheduler, **limits)
    pod["spec"] |= {"nodeName": node} if node else {}
    pod = await bench.kube.create(PODS, pod)
    assert await bench.bind(pod) == why
    assert await bench.grants() == [] and await bench.node_of(pod) == node


async def test_pods_of_a_scheduler_in_the_configuration_are_bound() -> None:
    bench = Bench(config=load("schedulers: {served: [mine]}", "test"))
    bench.offer()
    pod = await bench.kube.create(PODS, gpu_pod(scheduler="mine", gpu=1, gpumem=1000))
    assert await bench.bind(pod) == "" and await bench.node_of(pod) == "node-0"


async def test_a_repeated_bind_is_fine_and_takes_nothing_more(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    assert [await bench.bind(pod), await bench.bind(pod)] == ["", ""]
    assert await asyncio.gather(*(bench.bind(pod) for _ in range(3))) == ["", "", ""]
    assert len(await bench.grants()) == 1 and bench.memory() + bench.memory(gpu="GPU-1") == 1000
    assert await bench.bind(pod, "node-1") == "pod default/pod is already bound to node node-0"


async def test_what_does_not_fit_is_explained_in_numbers(bench: Bench) -> None:
    assert await bench.bind(await bench.pod(gpumem=40000)) == (
        "node node-0: needs 40000 MiB; the largest GPU has 32768 MiB"
    )
    assert await bench.bind(await bench.pod("q", gpu=1), "node-1") == "node node-1 offers no GPUs"
    assert await bench.grants() == []


@pytest.mark.parametrize("error", [Conflict("changed"), Refused("not allowed"), Outside("500"), NotFound("no node")])
async def test_a_refused_bind_undoes_grant_and_reservation(bench: Bench, error: Outside) -> None:
    pod = await bench.pod(gpumem=1000)
    failing(bench, "bind", error)
    assert await bench.bind(pod) == str(error)
    assert await bench.grants() == [] and bench.ledger.totals.taken("node-0") == {}


@pytest.mark.parametrize("error", [Refused("not allowed"), Outside("500")])
async def test_a_refused_grant_leaves_nothing(bench: Bench, error: Outside) -> None:
    pod = await bench.pod(gpumem=1000)
    failing(bench, "create", error)
    assert await bench.bind(pod) == str(error)
    assert bench.ledger.totals.taken("node-0") == {} and await bench.node_of(pod) == ""


async def test_a_lost_answer_to_the_grant_keeps_its_reservation(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    failing(bench, "create", Unreachable("lost"))
    assert await bench.bind(pod) == "lost"
    assert bench.memory() + bench.memory(gpu="GPU-1") == 1000


async def test_a_lost_answer_to_the_binding_is_found_out() -> None:
    kube = LossyKube(FakeKube())
    kube.faults.add(("bind", "after"))
    bench = Bench(kube)
    bench.offer()
    pod = await bench.pod(gpumem=1000)
    assert await bench.bind(pod) == "" and len(await bench.grants()) == 1
    assert kube.faults == set()


async def test_a_binding_that_may_still_arrive_keeps_its_grant_until_the_doubt_is_settled(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    failing(bench, "bind", Unreachable("lost"))
    assert await bench.bind(pod) == "lost"
    repaired(bench)
    assert len(await bench.grants()) == 1
    bench.clock.time += 60
    bench.ledger.expire(bench.clock.monotonic())
    await orphan_grants.remove_orphan_grants(bench.context, bench.locks)
    assert len(await bench.grants()) == 1
    bench.clock.time += UNCONFIRMED_S
    await orphan_grants.remove_orphan_grants(bench.context, bench.locks)
    assert await bench.grants() == [] and bench.ledger.totals.taken("node-0") == {}


async def left_behind(bench: Bench, **limits: object) -> Object:
    """A pod whose grant for node-0 stands, though it was never bound."""
    pod = await bench.pod(**limits)
    failing(bench, "bind", Unreachable("lost"))
    await bench.bind(pod)
    repaired(bench)
    bench.ledger.release(pod["metadata"]["uid"], Why.GRANT)
    return pod


async def test_a_grant_left_behind_is_used_for_its_node(bench: Bench) -> None:
    pod = await left_behind(bench, gpumem=1000)
    (before,) = await bench.grants()
    assert await bench.bind(pod) == ""
    assert [g["metadata"]["uid"] for g in await bench.grants()] == [before["metadata"]["uid"]]


async def test_a_grant_left_behind_is_withdrawn_for_another_node(bench: Bench) -> None:
    bench.offer("node-1")
    pod = await left_behind(bench, gpumem=1000)
    assert await bench.bind(pod, "node-1") == ""
    assert [g["spec"]["node"] for g in await bench.grants()] == ["node-1"]
    assert bench.ledger.totals.taken("node-0") == {}


async def test_an_orphan_grant_that_was_deleted_is_made_again(bench: Bench) -> None:
    pod = await left_behind(bench, gpumem=1000)
    (before,) = await bench.grants()
    await bench.kube.delete(GRANTS, before["metadata"]["name"], namespace="default")
    assert await bench.bind(pod) == ""
    (after,) = await bench.grants()
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert bench.memory() + bench.memory(gpu="GPU-1") == 1000


async def test_a_grant_left_behind_that_is_being_deleted_is_not_built_upon(bench: Bench) -> None:
    pod = await left_behind(bench, gpumem=1000)
    (grant,) = await bench.grants()
    name = grant["metadata"]["name"]
    await bench.kube.patch(GRANTS, name, {"metadata": {"finalizers": ["foregroundDeletion"]}}, namespace="default")
    await bench.kube.delete(GRANTS, name, namespace="default")
    assert "still being deleted" in await bench.bind(pod)
    assert await bench.node_of(pod) == ""
    await bench.kube.patch(GRANTS, name, {"metadata": {"finalizers": None}}, namespace="default")
    assert await bench.bind(pod) == ""


async def test_an_orphan_grant_does_not_block_its_own_pod(bench: Bench) -> None:
    pod = await left_behind(bench, gpu=2, gpumem=20000)
    assert bench.scheduler.filter(bench.parse(pod), ["node-0"]).fitting == ["node-0"]
    assert bench.scheduler.filter(bench.parse(await bench.pod("other", gpumem=20000)), ["node-0"]).fitting == []


async def test_an_orphan_grant_on_an_unhealthy_gpu_is_decided_again(bench: Bench) -> None:
    pod = await left_behind(bench, gpumem=1000)
    (share,) = (await bench.grants())[0]["spec"]["containers"][0]["shares"]
    bench.offer("node-0", *(replace(gpu, healthy=gpu.uuid != share["gpu"]) for gpu in gpus()))
    assert await bench.bind(pod) == ""
    (grant,) = await bench.grants()
    assert grant["spec"]["containers"][0]["shares"][0]["gpu"] != share["gpu"]


async def test_an_orphan_grant_that_no_longer_fits_is_decided_again(bench: Bench) -> None:
    pod = await left_behind(bench, gpumem=20000)
    ((before,),) = [g["spec"]["containers"][0]["shares"] for g in await bench.grants()]
    bench.ledger.observe_pod(pod["metadata"]["uid"], PodState(Stage.PENDING), 0)
    bench.ledger.remove_grant((await bench.grants())[0]["metadata"]["uid"], pod["metadata"]["uid"], 0)
    wish = {"nvidia.com/use-gpuuuid": before["gpu"]}
    other = admitted_pod("other", gpumem=20000)
    other["metadata"]["annotations"] = wish
    assert await bench.bind(await bench.kube.create(PODS, other)) == ""
    # The server still has the older grant, of which the ledger knows nothing: it stands in the way.
    error = await bench.bind(pod)
    assert error == "an earlier grant of pod default/pod is still being deleted"
    assert bench.memory(gpu=before["gpu"]) == 20000


async def test_a_grant_of_another_replica_is_taken_over_after_its_attempt_must_have_ended(bench: Bench) -> None:
    pod = await left_behind(bench, gpumem=1000)
    again = Bench(bench.kube)
    again.offer()
    assert await again.bind(pod) == "another attempt to bind pod default/pod may still be in progress"
    again.clock.time += MAX_ATTEMPT_S
    assert await again.bind(pod) == "" and len(await again.grants()) == 1
    assert again.memory() + again.memory(gpu="GPU-1") == 1000


async def test_a_pod_deleted_or_replaced_since_filter_gets_nothing(bench: Bench) -> None:
    pod = await bench.pod(gpumem=1000)
    await bench.kube.delete(PODS, "pod", namespace="default")
    assert await bench.bind(pod) == "pod default/pod no longer exists"
    await bench.pod(gpumem=1000)
    assert await bench.bind(pod) == "pod default/pod was replaced by another pod of the same name"
    assert await bench.grants() == [] and bench.ledger.totals.taken("node-0") == {}


async def test_a_pod_deleted_between_grant_and_binding_frees_its_share() -> None:
    bench = changing(lambda kube: kube.delete(PODS, "pod", namespace="default"))
    assert await bench.bind(await bench.pod(gpumem=1000)) == "pod default/pod no longer exists"
    assert await bench.grants() == [] and bench.ledger.totals.taken("node-0") == {}


BY_CLAIM = {
    "extendedResourceClaimStatus": {
        "resourceClaimName": "pod-extended-resources-x7k2p",
        "requestMappings": [
            {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "container-0-request-0"}
        ],
    }
}
"""What kube-scheduler writes into the status of a pod whose GPUs a claim serves."""


async def serve_by_claim(kube: Kube) -> Object:
    return await kube.patch(PODS, "pod", {"status": BY_CLAIM}, namespace="default", subresource="status")


@pytest.mark.parametrize("limits", [{"gpu": 1}, {"gpu": 1, "gpumem": 1000}])
async def test_a_pod_with_a_claim_for_its_gpus_is_bound_without_a_grant(bench: Bench, limits: dict[str, int]) -> None:
    pod = await bench.pod(**limits)
    await serve_by_claim(bench.kube)
    assert await bench.bind(pod) == "" and await bench.node_of(pod) == "node-0"
    assert await bench.grants() == [] and bench.ledger.totals.taken("node-0") == {}
    assert await bench.bind(pod) == ""
    assert "already bound to node node-0" in await bench.bind(pod, "node-1")


async def test_a_claim_that_is_made_after_the_watch_reported_the_pod_takes_the_place_of_its_grant() -> None:
    bench = changing(serve_by_claim)
    pod = await bench.pod(gpu=1, gpumem=1000)
    await report(bench, pod)
    assert await bench.bind(pod) == "" and await bench.node_of(pod) == "node-0"
    assert await bench.grants() == [] and bench.ledger.totals.taken("node-0") == {}


async def test_a_pod_that_others_label_meanwhile_is_bound_with_its_grant() -> None:
    async def label(kube: Kube) -> Object:
        labels = {"changed": str(len((await kube.list(GRANTS)).items))}
        return await kube.patch(PODS, "pod", {"metadata": {"labels": labels}}, namespace="default")

    bench = changing(label)
    pod = await bench.pod(gpu=1, gpumem=1000)
    await report(bench, pod)
    assert await bench.bind(pod) == "" and await bench.node_of(pod) == "node-0"
    assert len(await bench.grants()) == 1 and bench.memory() == 1000


async def test_a_pod_whose_request_changes_meanwhile_gets_no_grant_of_what_it_requested_before() -> None:
    async def ask_for_more(kube: Kube) -> Object:
        limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000"}
        containers = [{"name": "main", "image": "x", "resources": {"limits": limits}}]
        return await kube.patch(PODS, "pod", {"spec": {"containers": containers}}, namespace="default")

    bench = changing(ask_for_more)
    pod = await bench.pod(gpu=1, gpumem=1000)
    await report(bench, pod)
    assert "has the version" in await bench.bind(pod)
    assert await bench.grants() == [] and bench.memory() == 0
    assert await bench.node_of(pod) == ""


async def test_a_pod_that_others_change_all_the_time_holds_nothing() -> None:
    changes = iter(range(100))

    async def annotate(kube: Kube) -> Object:
        return await kube.patch(
            PODS, "pod", {"metadata": {"annotations": {"seen": str(next(changes))}}}, namespace="default"
        )

    bench = changing(annotate, times=100)
    pod = await bench.pod(gpu=1, gpumem=1000)
    assert await bench.bind(pod) == "pod default/pod was changed by others whenever it was to be bound"
    assert await bench.grants() == [] and bench.memory() == 0


async def test_a_pod_being_deleted_is_not_bound(bench: Bench) -> None:
    pod = admitted_pod(gpu=1)
    pod["metadata"]["finalizers"] = ["x/y"]
    pod = await bench.kube.create(PODS, pod)
    await bench.kube.delete(PODS, "pod", namespace="default")
    assert await bench.bind(pod) == "pod default/pod is being deleted"


async def test_a_pod_that_was_bound_without_a_grant_is_not_taken_over(bench: Bench) -> None:
    pod = await bench.pod(gpu=1)
    await bench.kube.bind("pod", namespace="default", uid=pod["metadata"]["uid"], node="node-0")
    assert "another scheduler, without a grant" in await bench.bind(pod)


async def test_forty_binds_at_once_take_what_there_is(bench: Bench) -> None:
    pods = [await bench.pod(f"p{i}", gpumem=3000) for i in range(40)]
    errors = await asyncio.gather(*(bench.bind(pod) for pod in pods))
    assert errors.count("") == 20
    assert (bench.memory(), bench.memory(gpu="GPU-1")) == (30000, 30000)
    assert len(await bench.grants()) == 20
    # A sentence in numbers for each of the others.
    assert all(error.startswith("node node-0: all 10 slots") for error in errors if error)


async def test_a_quota_is_held_among_pods_admitted_together(bench: Bench) -> None:
    hard = {"hard": {"limits.nvidia.com/gpumem": "5000"}}
    bench.quotas.observe({"metadata": {"name": "gpu", "namespace": "default"}, "spec": hard})
    pods = [await bench.pod(f"p{i}", gpumem=2000) for i in range(3)]
    errors = [await bench.bind(pod) for pod in pods]
    assert errors == ["", "", "quota gpu allows 5000 of nvidia.com/gpumem; 4000 are used and the pod requests 2000"]


async def test_the_grants_carry_the_policy_of_the_configuration() -> None:
    bench = Bench(config=load("hami: {gpuCorePolicy: force}", "c"))
    bench.offer()
    await bench.bind(await bench.pod(gpumem=1000, gpucores=30))
    assert (await bench.grants())[0]["spec"]["containers"][0]["shares"][0]["computePolicy"] == "cap"
    assert [g["kind"] for g in (await bench.kube.list(GRANTS)).items] == ["Grant"]


@pytest.mark.parametrize("label", ["", "lamina.dev/webhook", "hami.io/webhook"])
async def test_a_pod_that_admission_did_not_fill_in_gets_no_share(bench: Bench, label: str) -> None:
    manifest = gpu_pod(gpumem=1000)
    manifest["metadata"]["labels"] = {label: "ignore"} if label else {"lamina.dev/webhook": "other"}
    pod = await bench.kube.create(PODS, manifest)
    sentence = (
        'container "main": nvidia.com/gpu is missing because admission has not seen this pod; '
        f"{f'remove its label {label}=ignore, ' if label else ''}delete the pod and create it again"
    )
    assert bench.scheduler.filter(bench.parse(pod), ["node-0"]).error == sentence
    assert sentence in await bench.bind(pod)
    assert await bench.grants() == []
    assert bench.ledger.totals.taken("node-0") == {}
