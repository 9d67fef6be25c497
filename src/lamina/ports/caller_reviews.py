"""Whether a caller may read metrics: the API server says who it is, by its token, and what it may do."""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from typing import NamedTuple

from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Kube

log = logging.getLogger(__name__)

PATH = "/metrics"
KEPT_S = 60.0
"""How long a caller that is allowed is not checked again."""
MOST_KEPT = 256
_AT_ONCE = 2
MOST_WAITING = 16
"""Callers that wait until they are checked. Anyone may call, and each check is two requests to the API server."""


class CallerVerdict(NamedTuple):
    """A status of HTTP and its reason. 200 is allowed."""

    status: int
    reason: str = ""


_ALLOWED = CallerVerdict(200)
_BUSY = CallerVerdict(429, "too many callers are being checked; try again")
_UNAVAILABLE = CallerVerdict(503, "the API server cannot be asked about the caller; try again")
_UNKNOWN = CallerVerdict(401, "send a token that the API server accepts, as Authorization: Bearer TOKEN")
_FORBIDDEN = CallerVerdict(403, f"the caller may not get {PATH}; bind it to a ClusterRole with this nonResourceURL")


class CallerReviews:
    """Checks callers by their tokens. It remembers only callers that the API server allows, so that others cannot push
    them out."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._until: OrderedDict[bytes, float] = OrderedDict()
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def verdict(self, authorization: str) -> CallerVerdict:
        """What to answer to a caller with this header, which may be empty."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return _UNKNOWN
        key = hashlib.sha256(token.encode(errors="replace")).digest()
        if self._clock.monotonic() < self._until.get(key, 0.0):
            return _ALLOWED
        if self._waiting >= MOST_WAITING:
            return _BUSY
        self._waiting += 1
        try:
            async with self._free:
                verdict = await self._review(token)
        except Outside as error:
            log.warning("A caller of %s cannot be checked: %s", PATH, error)
            return _UNAVAILABLE
        finally:
            self._waiting -= 1
        self._remember(key, allowed=verdict == _ALLOWED)
        return verdict

    async def _review(self, token: str) -> CallerVerdict:
        """Ask the API server. Raises Outside."""
        status = (await self._kube.create(TOKEN_REVIEWS, {"metadata": {}, "spec": {"token": token}})).get(
            "status"
        ) or {}
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            return _UNKNOWN
        asked = {"nonResourceAttributes": {"path": PATH, "verb": "get"}, "user": user["username"]}
        asked |= {key: user[key] for key in ("groups", "uid", "extra") if user.get(key)}
        answer = (await self._kube.create(SUBJECT_ACCESS_REVIEWS, {"metadata": {}, "spec": asked})).get("status") or {}
        return _ALLOWED if answer.get("allowed") is True and answer.get("denied") is not True else _FORBIDDEN

    def _remember(self, key: bytes, *, allowed: bool) -> None:
        self._until.pop(key, None)
        if allowed:
            self._until[key] = self._clock.monotonic() + KEPT_S
            while len(self._until) > MOST_KEPT:
                self._until.popitem(last=False)
