"""The registration of the webhook is restored as soon as others change it, as tools do that apply a repository."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.admission.certificate_store import CertificateStore
from lamina.admission.registration import WebhookRegistration
from lamina.admission.webhook_configuration import url_address
from lamina.config_source.live import LiveConfiguration
from lamina.configuration import DEFAULT
from lamina.ports.clock import FakeClock
from lamina.ports.kube import MUTATING_WEBHOOKS
from lamina.ports.kube.fake import FakeKube

SETTLED_S = 6.0
"""When all API servers have noticed a write, and less than the next check that is due anyway."""


class Leader:
    def __init__(self) -> None:
        self.kube, self.clock, self.served = FakeKube(), FakeClock(), 0
        store = CertificateStore(self.kube, self.clock, ["lamina.example"])
        serve = store.serve

        def counted(*certificate: Any) -> None:
            self.served += 1
            serve(*certificate)

        store.serve = counted  # type: ignore[method-assign]
        self.live = LiveConfiguration(DEFAULT, "")
        address = url_address("127.0.0.1", 1)
        self.registration = WebhookRegistration(self.kube, self.clock, self.live, store, address)

    async def present(self) -> Any:
        found = {each["metadata"]["name"]: each for each in (await self.kube.list(MUTATING_WEBHOOKS)).items}
        return found.get("lamina.dev", {}).get("webhooks")

    def writes(self) -> int:
        return sum(call[0] in ("create", "replace") and MUTATING_WEBHOOKS in call for call in self.kube.calls)


@pytest.fixture
async def leader() -> AsyncIterator[Leader]:
    made = Leader()
    tasks = [asyncio.create_task(made.registration.watch())]
    tasks.append(asyncio.create_task(made.registration.run(lambda: True)))
    await made.clock.advance(SETTLED_S)
    assert await made.present() and made.served == 1
    yield made
    for task in tasks:
        task.cancel()


async def test_what_others_write_is_replaced(leader: Leader) -> None:
    good = await leader.present()
    await leader.kube.patch(MUTATING_WEBHOOKS, "lamina.dev", {"webhooks": []})
    await leader.clock.advance(SETTLED_S)
    assert await leader.present() == good


async def test_it_is_made_again_when_it_is_deleted(leader: Leader) -> None:
    good = await leader.present()
    await leader.kube.delete(MUTATING_WEBHOOKS, "lamina.dev")
    await leader.clock.advance(SETTLED_S)
    assert await leader.present() == good


async def test_a_change_while_it_settles_is_replaced_after_that(leader: Leader) -> None:
    good = await leader.present()
    for _ in range(2):
        await leader.kube.patch(MUTATING_WEBHOOKS, "lamina.dev", {"webhooks": []})
        await leader.clock.advance(1.0)
    await leader.clock.advance(2 * SETTLED_S)
    assert await leader.present() == good


async def test_its_own_write_causes_no_other_and_no_earlier_certificate(leader: Leader) -> None:
    before, served = leader.writes(), leader.served
    changed = [each | {"failurePolicy": "Ignore"} for each in await leader.present()]
    await leader.kube.patch(MUTATING_WEBHOOKS, "lamina.dev", {"webhooks": changed})
    await leader.clock.advance(4.0)
    assert leader.writes() == before + 1 and leader.served == served, "API servers have not noticed it yet"
    await leader.clock.advance(60.0)
    assert leader.writes() == before + 1 and leader.served == served + 1


async def test_while_lamina_is_disabled_an_empty_registration_may_stay(leader: Leader) -> None:
    """Or the controller would delete for ever what a tool creates again."""
    leader.live.update("{apiVersion: lamina.dev/v1alpha1, kind: Configuration, enabled: false}", "a test")
    await leader.clock.advance(SETTLED_S)
    assert await leader.present() is None
    await leader.kube.create(MUTATING_WEBHOOKS, {"metadata": {"name": "lamina.dev"}})
    await leader.clock.advance(SETTLED_S)
    assert (await leader.kube.list(MUTATING_WEBHOOKS)).items
    await leader.kube.patch(MUTATING_WEBHOOKS, "lamina.dev", {"webhooks": [{"name": "a"}]})
    await leader.clock.advance(SETTLED_S)
    assert not (await leader.kube.list(MUTATING_WEBHOOKS)).items
