"""Every request for another size is answered, whatever the pod has and whichever state it is in."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from lamina.core.gpus import Inventory, MigInstance, Mode, NativeResource
from lamina.core.objects import write_spec
from lamina.core.sizes import RESIZE, RESIZE_STATUS, RESIZE_WHEN_HELD
from lamina.errors import BadInput, LaminaError, Outside
from lamina.ledger.grant_objects import grant_record, replaced_grant
from lamina.ledger.resize_answers import ResizeAnswer, read_answer
from lamina.operations import resize
from lamina.operations.resize import ANSWER_S, Resize, resize_pod, resize_workload
from lamina.ports.kube import CONFIG_MAPS, DEPLOYMENTS, GRANTS, INVENTORIES, PODS, Object, Refused
from lamina.ports.kube.fake import FakeKube
from tests.controller.resizes import NODE, Resizing
from tests.worlds.objects import admitted_pod

SHARE = {"gpumem": 4000, "gpucores": 20}
CLAIM = [{"name": "gpu", "resourceClaimName": "c"}]


def with_claim(pod: Object) -> Object:
    """The pod with a container more, whose GPU is from a claim."""
    pod["spec"]["resourceClaims"] = CLAIM
    pod["spec"]["containers"].append({"name": "claimed", "resources": {"claims": [{"name": "gpu"}]}})
    return pod


def plain(name: str = "a", *containers: Object) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": list(containers)}}


def by_extended_resource(name: str = "a") -> Object:
    pod = plain(name, {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}})
    mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "container-0-request-0"}
    pod["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]}}
    return pod


def claims_only() -> Object:
    pod = plain("a", {"name": "main", "resources": {"claims": [{"name": "gpu"}]}})
    return pod | {"spec": pod["spec"] | {"resourceClaims": CLAIM}}


HOLDINGS: dict[str, Callable[[], Object]] = {
    "share": lambda: admitted_pod("a", **SHARE),
    "whole": lambda: admitted_pod("a", gpu=1),
    "mig": lambda: admitted_pod("a", **SHARE),
    "mps": lambda: admitted_pod("a", **SHARE),
    "claim": claims_only,
    "share and claim": lambda: with_claim(admitted_pod("a", **SHARE)),
    "extended resource": by_extended_resource,
    "native": lambda: admitted_pod("a", gpu=1),
    "nothing": lambda: plain("a", {"name": "main"}),
    "unreadable": lambda: plain("a", {"name": "main", "resources": {"limits": {"nvidia.com/gpumem": "x"}}}),
}
WITH_GRANT = ("share", "whole", "mig", "mps", "share and claim")
STATES = ("pending", "running", "Succeeded", "Failed")
REFUSED = {
    "whole": "container main: only a share of a GPU can be resized",
    "mig": "container main: only a share of a GPU can be resized",
    "mps": "container main: MPS sets limits when a program starts",
    "claim": "shares of ResourceClaims cannot be resized",
    "extended resource": "shares of ResourceClaims cannot be resized",
    "native": "kubelet allocates its devices",
    "nothing": "it requests no share of a GPU",
    "unreadable": "its request cannot be read",
}


NATIVE = Inventory(
    node=NODE, driver="", gpus=(), native_resources=(NativeResource(resource="nvidia.com/gpu", count=1),)
)


class Answering(Resizing):
    """With nodes that offer native devices where that is wanted."""

    native = False

    def observe(self) -> None:
        super().observe()
        if self.native:
            self.bench.ledger.observe_inventory(NATIVE)

    async def make(self, holding: str, state: str) -> Object:
        self.native = holding == "native"
        if self.native:
            await self.kube.create(INVENTORIES, {"metadata": {"name": NODE}, "spec": write_spec(NATIVE)})
        pod = await self.kube.create(PODS, HOLDINGS[holding](), namespace="default")
        self.observe()
        if state != "pending" and holding in WITH_GRANT:
            assert await self.bench.bind(pod, NODE) == ""
            await self._in_mode(holding)
            await self.agent()
        elif state != "pending":
            await self.change(spec={"nodeName": NODE})
        if state != "pending":
            await self.change(status={"phase": state.capitalize()})
        self.observe()
        return await self.kube.get(PODS, "a", namespace="default")

    async def change(self, **fields: Object) -> None:
        await self.kube.patch(PODS, "a", fields, namespace="default")
        self.observe()

    async def _in_mode(self, holding: str) -> None:
        (obj,) = self.objects(GRANTS)
        grant = grant_record(obj).grant
        mig = MigInstance(profile="1g.5gb", start=0) if holding == "mig" else None
        mode = {"mig": Mode.MIG, "mps": Mode.MPS}.get(holding)
        if mode is not None:
            containers = tuple(
                structs.replace(each, shares=tuple(structs.replace(share, mode=mode, mig=mig) for share in each.shares))
                for each in grant.containers
            )
            await self.kube.replace(GRANTS, replaced_grant(obj, structs.replace(grant, containers=containers)))

    async def while_running(self, work: Any, steps: int = 400) -> str:
        """What a command says, while controller and agent go on."""
        task = asyncio.ensure_future(work)
        try:
            for _ in range(steps):
                await asyncio.sleep(0)
                if task.done():
                    break
                self.observe()
                await self.step()
                await self.agent()
                await self.clock.advance(0.5)
            assert task.done(), "the command hangs"
            return str(task.result())
        except LaminaError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            task.cancel()

    def shape(self, *, wait: bool, **more: Any) -> Any:
        size = Resize(more.pop("container", ""), 5000, None, **more)
        return resize_pod(self.kube, self.clock, "default", "a", size, wait=wait)


@pytest.fixture
def world() -> Answering:
    return Answering(FakeKube())


@pytest.mark.parametrize("holding", HOLDINGS)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("wait", [True, False])
async def test_the_command_answers_for_every_pod(world: Answering, holding: str, state: str, wait: bool) -> None:
    pod = await world.make(holding, state)
    said = await world.while_running(world.shape(wait=wait))
    if state in ("Succeeded", "Failed"):
        assert said == "BadInput: pod default/a cannot be resized: the pod has ended"
    elif state == "pending":
        assert said.startswith("BadInput: pod default/a cannot be resized: the pod is not on a node yet")
    elif holding in REFUSED:
        assert said.startswith(f"BadInput: pod default/a cannot be resized: {REFUSED[holding]}"), said
    else:
        assert said == f"Pod default/a: {'done' if wait else 'asked for'} main=5000."
        return
    assert world.annotation(pod, RESIZE) == "", "a pod that cannot be resized is not asked"


@pytest.mark.parametrize("holding", HOLDINGS)
@pytest.mark.parametrize("state", STATES)
async def test_the_controller_answers_every_annotation(world: Answering, holding: str, state: str) -> None:
    pod = await world.make(holding, state)
    await world.ask(pod, "main=5000")
    await world.rest()
    answer = read_answer(world.status(pod), "main=5000")
    assert answer is not None
    if state in ("Succeeded", "Failed"):
        assert answer == ResizeAnswer("refused", "the pod has ended")
    elif state == "pending" and holding in (*WITH_GRANT, "native"):
        assert answer == ResizeAnswer("waiting", "the pod is not on a node yet")
    elif holding in REFUSED:
        assert (answer.state, answer.why.startswith(REFUSED[holding])) == ("refused", True), answer
    else:
        assert answer == ResizeAnswer("done")


async def test_a_pod_that_was_asked_before_it_had_a_node_is_resized_there(world: Answering) -> None:
    pod = await world.make("share", "pending")
    await world.ask(pod, "main=5000")
    await world.rest(2)
    assert world.status(pod).startswith("waiting")
    assert await world.bench.bind(await world.kube.get(PODS, "a", namespace="default"), NODE) == ""
    await world.agent()
    await world.rest()
    assert world.status(pod) == "done main=5000"


async def test_an_answer_stays_when_the_pod_has_ended(world: Answering) -> None:
    pod = await world.make("share", "running")
    await world.ask(pod, "main=5000")
    await world.rest()
    await world.change(status={"phase": "Succeeded"})
    await world.rest()
    assert world.status(pod) == "done main=5000"


async def test_a_refusal_is_written_once(world: Answering) -> None:
    await world.make("claim", "running")
    await world.ask({"metadata": {"name": "a"}}, "main=5000")
    await world.rest(3)
    before = len(world.kube.calls)
    await world.rest(3)
    assert len(world.kube.calls) == before


@pytest.mark.parametrize("container", ["claimed", "main"])
async def test_a_pod_with_a_share_and_a_claim_by_container(world: Answering, container: str) -> None:
    await world.make("share and claim", "running")
    said = await world.while_running(world.shape(wait=True, container=container))
    if container == "main":
        assert said == "Pod default/a: done main=5000."
    else:
        assert said.startswith("BadInput: pod default/a cannot be resized: container claimed: shares of ResourceClaims")


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never holds")


async def ended(world: Answering) -> None:
    await world.change(status={"phase": "Failed"})


async def deleted(world: Answering) -> None:
    await world.kube.delete(PODS, "a", namespace="default")


async def replaced(world: Answering) -> None:
    await deleted(world)
    await world.kube.create(PODS, admitted_pod("a", **SHARE))


async def asked_again(world: Answering) -> None:
    await world.change(metadata={"annotations": {RESIZE: "main=6000", RESIZE_STATUS: None}})


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (ended, "BadInput: pod default/a is not resized: the pod has ended"),
        (deleted, "BadInput: pod default/a was deleted before it had the size"),
        (replaced, "BadInput: pod default/a was deleted before it had the size"),
        (asked_again, "BadInput: pod default/a was asked for another size meanwhile"),
    ],
)
@pytest.mark.parametrize("waits", [True, False])
async def test_a_wait_ends_with_the_pod(
    world: Answering, happens: Callable[[Answering], Any], said: str, waits: bool
) -> None:
    await world.make("share", "running")
    task = asyncio.ensure_future(world.shape(wait=True, waits=waits))
    await eventually(lambda: world.annotation(world.objects(PODS)[0], RESIZE) != "")
    await happens(world)
    world.bench.leads = False
    assert await world.while_running(task) == said


@pytest.mark.parametrize("waits", [True, False])
async def test_without_a_leader_the_wait_ends_after_a_minute(world: Answering, waits: bool) -> None:
    await world.make("share", "running")
    world.bench.leads = False
    began = world.clock.monotonic()
    said = await world.while_running(world.shape(wait=True, waits=waits))
    assert said.startswith("Outside: pod default/a does not have the size after 60 s: the controller has not answered")
    assert world.clock.monotonic() - began <= ANSWER_S + 2


@pytest.mark.parametrize("waits", [True, False])
async def test_without_its_agent_too(world: Answering, waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.make("share", "running")

    async def silent() -> None:
        world.observe()

    monkeypatch.setattr(world, "agent", silent)
    said = await world.while_running(world.shape(wait=True, waits=waits))
    assert said.endswith("does not have the size after 60 s: the agent has not applied it yet")


async def test_a_size_that_may_wait_for_programs_is_waited_for(world: Answering) -> None:
    pod = await world.make("share", "running")
    world.used[pod["metadata"]["uid"]] = 9000
    with pytest.raises(AssertionError, match="hangs"):
        await world.while_running(world.shape(wait=True, waits=True))
    assert world.status(pod).startswith("waiting main=5000: it holds 9000 MiB")


@pytest.mark.parametrize("kind", [GRANTS, CONFIG_MAPS])
async def test_without_the_right_to_know_the_controller_says_it(world: Answering, kind: Any) -> None:
    await world.make("whole", "running")
    refuse = lambda resource, name: Refused("no") if resource == kind else None  # noqa: E731
    kube = world.kube
    asked, world.kube = FakeKube.__new__(FakeKube), kube
    vars(asked).update(vars(kube), failing={"list": refuse, "get": refuse})
    size = Resize("", 5000, None)
    said = await world.while_running(resize_pod(asked, world.clock, "default", "a", size, wait=True))
    assert said.startswith("BadInput: pod default/a is not resized: container main: only a share of a GPU")


def deployment() -> Object:
    selector = {"matchLabels": {"app": "a"}}
    template = {"metadata": {"labels": selector["matchLabels"]}, "spec": admitted_pod("a", **SHARE)["spec"]}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": selector, "template": template}}


@pytest.mark.parametrize(("holding", "wait"), list(itertools.product(sorted(REFUSED), [True, False])))
async def test_a_workload_whose_pods_cannot_be_resized_stays_as_it_is(
    world: Answering, holding: str, wait: bool
) -> None:
    await world.make(holding, "running")
    await world.change(metadata={"labels": {"app": "a"}})
    before = await world.kube.create(DEPLOYMENTS, deployment())
    work = resize_workload(world.kube, world.clock, "default", "deploy/web", Resize("main", 5000, None), wait=wait)
    said = await world.while_running(_lines(work))
    assert said.startswith(f"BadInput: pod default/a cannot be resized: {REFUSED[holding]}"), said
    assert await world.kube.get(DEPLOYMENTS, "web", namespace="default") == before


async def _lines(work: Any) -> list[str]:
    return [line async for line in work]


@pytest.mark.parametrize(
    ("status", "other_size", "answer"),
    [
        ("done main=60", "main=6", None),
        ("done main=6", "main=6", ResizeAnswer("done")),
        ("refused main=60: no", "main=6", None),
        ("refused main=6: no: never", "main=6", ResizeAnswer("refused", "no: never")),
        ("waiting main=6", "main=6", ResizeAnswer("waiting")),
        ("", "main=6", None),
        ("hello", "main=6", None),
    ],
)
def test_a_status_is_read_for_one_request(status: str, other_size: str, answer: ResizeAnswer | None) -> None:
    assert read_answer(status, other_size) == answer
    if answer is not None:
        assert answer.written(other_size) == status


def test_errors_of_the_command_have_exit_codes_of_their_own() -> None:
    assert (BadInput.exit_code, Outside.exit_code) == (2, 1)
    assert resize.ANSWER_S == 60 and RESIZE_WHEN_HELD.startswith("lamina.dev/")
