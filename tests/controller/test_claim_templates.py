"""Templates of generated claims: made before pods are scheduled, only what the contents say, and removed after use."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from lamina.configuration import DEFAULT, Config
from lamina.controller.claims.templates import MAX_DELAY_S, MAX_TRIES, SWEEP_S, UNUSED_S, ClaimTemplates
from lamina.dialects.by_claim import ENTRY, GENERATED
from lamina.dra.generated import GeneratedClaim, GeneratedRequest, template_spec
from lamina.ports.kube import EVENTS, PODS, RESOURCE_CLAIM_TEMPLATES, EventRecorder, Object, Resource
from tests.controller.binders import Bench
from tests.waiting import canceled
from tests.worlds.clocks import settle

CLAIM = GeneratedClaim(requests=(GeneratedRequest(container="main", memory_mib=1024, cores=30),))
OTHER = GeneratedClaim(requests=(GeneratedRequest(container="main", memory_mib=2048),))
ASKED = msgspec.structs.replace(DEFAULT, admission=msgspec.structs.replace(DEFAULT.admission, by_claim="asked"))


class Maker(Bench):
    """A replica that makes templates."""

    def __init__(self, config: Config = ASKED) -> None:
        super().__init__(config=config)
        events = EventRecorder(self.kube, "test", now=self.clock.wall)
        self.templates = ClaimTemplates(self.context, events, lambda: self.leads)

    async def claimed(
        self, name: str, claim: GeneratedClaim = CLAIM, *, text: str = "", namespace: str = "default", **spec: Any
    ) -> None:
        """A pod that admission has changed."""
        await self.waits(name, claim, text=text, namespace=namespace, **spec)
        await self.step()

    async def waits(
        self, name: str, claim: GeneratedClaim = CLAIM, *, text: str = "", namespace: str = "default", **spec: Any
    ) -> None:
        """The same, before the next step."""
        meta: dict[str, Any] = {"name": name, "namespace": namespace, "labels": {GENERATED: claim.name}}
        meta["annotations"] = {GENERATED: text or claim.text}
        entry = {"name": ENTRY, "resourceClaimTemplateName": claim.name}
        await self.kube.create(PODS, {"metadata": meta, "spec": {"resourceClaims": [entry], **spec}})

    async def step(self) -> None:
        """After the watch has reported everything."""
        await settle(20)
        await self.templates.step()

    async def names(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in (await self.kube.list(RESOURCE_CLAIM_TEMPLATES)).items)

    async def template(self, spec: Any, name: str = CLAIM.name) -> Object:
        """One that is there already."""
        meta = {"name": name, "namespace": "default"}
        return await self.kube.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": meta, "spec": spec})

    def count_creations(self) -> list[tuple[str, str]]:
        """The namespaces and names of templates that are tried from now on."""
        calls: list[tuple[str, str]] = []
        create = self.kube.create

        async def counted(resource: Resource, obj: Object, *, namespace: str = "") -> Object:
            if resource == RESOURCE_CLAIM_TEMPLATES:
                calls.append((namespace, obj["metadata"]["name"]))
            return await create(resource, obj, namespace=namespace)

        self.kube.create = counted  # type: ignore[method-assign]
        return calls

    async def events(self) -> list[str]:
        return [each["message"] for each in (await self.kube.list(EVENTS)).items]


@pytest.fixture
async def maker() -> AsyncIterator[Maker]:
    maker = Maker()
    task = asyncio.create_task(maker.templates.run())
    await maker.step()
    yield maker
    await canceled(task)


async def test_a_template_is_made_for_a_pod_that_waits_and_once_for_equal_ones(maker: Maker) -> None:
    await maker.claimed("one")
    await maker.claimed("two")
    await maker.claimed("three", OTHER)
    assert await maker.names() == sorted([CLAIM.name, OTHER.name])
    found = await maker.kube.get(RESOURCE_CLAIM_TEMPLATES, CLAIM.name, namespace="default")
    assert found["spec"] == template_spec(CLAIM)


async def test_only_the_leader_writes(maker: Maker) -> None:
    maker.leads = False
    await maker.claimed("one")
    assert await maker.names() == []
    maker.leads = True
    await maker.step()
    assert await maker.names() == [CLAIM.name]


async def test_a_template_that_was_deleted_is_made_again_for_the_next_pod(maker: Maker) -> None:
    await maker.claimed("one")
    await maker.kube.delete(RESOURCE_CLAIM_TEMPLATES, CLAIM.name, namespace="default")
    await maker.clock.advance(SWEEP_S)
    await maker.step()
    await maker.step()
    assert await maker.names() == [CLAIM.name]


@pytest.mark.parametrize("text", ["odd", OTHER.text, '{"requests": [{"container": "main", "memoryMib": 0}]}'])
async def test_an_annotation_that_lamina_did_not_write_makes_nothing(maker: Maker, text: str) -> None:
    await maker.claimed("forged", text=text)
    await maker.step()
    assert await maker.names() == []
    (event,) = await maker.events()
    assert event.startswith("the annotation ")
    await maker.claimed("honest")
    assert await maker.names() == [CLAIM.name]


async def test_a_template_with_other_contents_is_left_alone_and_reported(maker: Maker) -> None:
    await maker.template(template_spec(OTHER))
    await maker.claimed("one")
    found = await maker.kube.get(RESOURCE_CLAIM_TEMPLATES, CLAIM.name, namespace="default")
    assert found["spec"] == template_spec(OTHER)
    (event,) = await maker.events()
    assert "says something else; delete it and the pod" in event


async def test_the_same_contents_in_the_words_of_the_api_server_are_accepted(maker: Maker) -> None:
    spec = template_spec(CLAIM)
    (request,) = spec["spec"]["devices"]["requests"]
    request["exactly"] |= {"allocationMode": "ExactCount", "count": 1}
    request["exactly"]["capacity"]["requests"]["memory"] = "1Gi"
    await maker.template(spec)
    await maker.claimed("one")
    assert await maker.events() == []


async def test_a_template_is_removed_some_time_after_the_last_pod(maker: Maker) -> None:
    await maker.claimed("one")
    await maker.template(template_spec(OTHER), "theirs")
    await maker.kube.delete(PODS, "one", namespace="default")
    await maker.clock.advance(SWEEP_S)
    await maker.step()
    await maker.clock.advance(UNUSED_S - 1)
    await maker.step()
    assert await maker.names() == sorted([CLAIM.name, "theirs"])
    await maker.clock.advance(SWEEP_S)
    await maker.step()
    assert await maker.names() == ["theirs"], "one that Lamina did not make stays"


async def test_a_template_stays_while_a_pod_names_it(maker: Maker) -> None:
    await maker.claimed("one", nodeName="node-0")
    await maker.claimed("waits")
    await maker.kube.delete(PODS, "waits", namespace="default")
    for _ in range(3):
        await maker.clock.advance(UNUSED_S)
        await maker.step()
    assert await maker.names() == [CLAIM.name]


def other(number: int) -> GeneratedClaim:
    """Equal to no other."""
    return GeneratedClaim(requests=(GeneratedRequest(container="main", memory_mib=number + 1),))


async def test_no_claim_is_made_where_the_configuration_says_never(maker: Maker) -> None:
    maker.configuration.value = DEFAULT
    await maker.claimed("by-hand", GeneratedClaim(requests=(GeneratedRequest(container="main", count=16),)))
    await maker.step()
    assert await maker.names() == []
    (event,) = await maker.events()
    assert event.startswith("admission.byClaim is never")
    maker.configuration.value = ASKED
    await maker.clock.advance(MAX_DELAY_S)
    await maker.step()
    assert len(await maker.names()) == 1, "the setting in force decides"


async def test_what_fails_is_tried_ever_less_often(maker: Maker) -> None:
    """A conflict, and any other refusal of the API server, such as a quota on objects."""
    await maker.template(template_spec(OTHER))
    calls = maker.count_creations()
    await maker.claimed("one")
    for _ in range(240):
        await maker.clock.advance(0.5)
        await maker.step()
    assert 5 <= len(calls) <= 12
    await maker.kube.delete(RESOURCE_CLAIM_TEMPLATES, CLAIM.name, namespace="default")
    await maker.clock.advance(MAX_DELAY_S)
    await maker.step()
    assert (await maker.kube.get(RESOURCE_CLAIM_TEMPLATES, CLAIM.name, namespace="default"))["spec"] == template_spec(
        CLAIM
    )


async def test_pods_in_conflict_delay_no_other_namespace(maker: Maker) -> None:
    calls = maker.count_creations()
    for number in range(40):
        await maker.template(template_spec(OTHER), other(number).name)
        await maker.waits(f"evil-{number}", other(number))
    calls.clear()
    await maker.claimed("honest", namespace="team-b")
    assert ("team-b", CLAIM.name) in calls and len(calls) == MAX_TRIES + 1
    await maker.step()
    assert len(calls) == 2 * MAX_TRIES + 1, "the others have their turn"


async def test_a_pod_that_is_gone_leaves_nothing_behind(maker: Maker) -> None:
    await maker.template(template_spec(OTHER))
    await maker.claimed("one")
    await maker.kube.delete(PODS, "one", namespace="default")
    await maker.step()
    assert not maker.templates._tries and not maker.templates._reported
