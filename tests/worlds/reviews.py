"""An API server that reviews tokens, and what their users may do."""

import asyncio
from collections.abc import Callable

from lamina.errors import Outside
from lamina.ports.kube import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Object, Resource
from lamina.ports.kube.fake import FakeKube

GROUPS = ["system:authenticated"]


class ReviewingKube(FakeKube):
    """A token that it `knows` is of the user of this name, and `allows` says what a SubjectAccessReview gets."""

    def __init__(self, knows: Callable[[str], bool], allows: Callable[[Object], bool]) -> None:
        super().__init__()
        self._knows, self._allows = knows, allows
        self.asked: list[tuple[Resource, Object]] = []
        self.failure: Outside | None = None
        self.answers = asyncio.Event()
        """No review is answered before it is set."""
        self.answers.set()

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        if resource not in (TOKEN_REVIEWS, SUBJECT_ACCESS_REVIEWS):
            return await super().create(resource, obj, namespace=namespace)
        self.asked.append((resource, obj["spec"]))
        await self.answers.wait()
        if self.failure is not None:
            raise self.failure
        if resource == SUBJECT_ACCESS_REVIEWS:
            return obj | {"status": {"allowed": self._allows(obj["spec"])}}
        token = obj["spec"]["token"]
        known = self._knows(token)
        user = {"username": token, "groups": GROUPS, "uid": f"uid-of-{token}"} if known else {}
        return obj | {"status": {"authenticated": known, "user": user}}
