"""Whether a caller may read metrics: the API server says who it is, by its token, and what it may do.

Callers that it allowed before wait in a line of their own, so that others, however many they are, do not delay them.
"""

import base64
import hashlib
import logging
import re
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from lamina.errors import Outside
from lamina.ports.caller_queue import CallerQueue, Crowded
from lamina.ports.clock import Clock
from lamina.ports.kube import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Kube, Object

log = logging.getLogger(__name__)

PATH = "/metrics"
KEPT_S = 60.0
"""How long a caller that is allowed is not checked again."""
MAX_KEPT = 256
_AT_ONCE = 2
MAX_WAITING = 16
"""Callers that wait until they are checked. Anyone may call, and each check is two requests to the API server."""
_MAX_TOKEN = 16384
_TOKEN = re.compile(r"[A-Za-z0-9._~+/:-]+=*")
_JWT = re.compile(r"eyJ[\w-]*\.[\w-]+\.[\w-]+", re.ASCII)


class CallerVerdict(NamedTuple):
    """A status of HTTP and its reason. 200 is allowed."""

    status: int
    reason: str = ""


_ALLOWED = CallerVerdict(200)
BUSY = CallerVerdict(429, "too many callers are being checked; try again")
UNAVAILABLE = CallerVerdict(503, "the API server cannot be asked about the caller; try again")
UNKNOWN = CallerVerdict(401, "send a token that the API server accepts, as Authorization: Bearer TOKEN")
_FORBIDDEN = CallerVerdict(403, f"the caller may not get {PATH}; bind it to a ClusterRole with this nonResourceURL")


async def user_of(kube: Kube, token: str) -> Object | None:
    """Who has this token, as the API server says; None where it does not accept it. Raises Outside."""
    status = (await kube.create(TOKEN_REVIEWS, {"metadata": {}, "spec": {"token": token}})).get("status") or {}
    user: Object = status.get("user") or {}
    return user if status.get("authenticated") is True and user.get("username") else None


async def may(kube: Kube, user: Object, asked: Object) -> bool:
    """Whether the API server allows a user what is asked, as in a SubjectAccessReview. Raises Outside."""
    spec = asked | {"user": user["username"]} | {key: user[key] for key in ("groups", "uid", "extra") if user.get(key)}
    answer = (await kube.create(SUBJECT_ACCESS_REVIEWS, {"metadata": {}, "spec": spec})).get("status") or {}
    return answer.get("allowed") is True and answer.get("denied") is not True


def bearer_token(authorization: str) -> str:
    """The token of a header, or nothing."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def is_token(token: str) -> bool:
    """Whether an API server could accept this. One that cannot be decoded is refused without asking."""
    if len(token) > _MAX_TOKEN or not _TOKEN.fullmatch(token):
        return False
    return not token.startswith("eyJ") or (_JWT.fullmatch(token) is not None and _is_json_object(token.split(".")[1]))


def _is_json_object(part: str) -> bool:
    """Whether a part of a JSON Web Token is one."""
    try:
        return isinstance(msgspec.json.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))), dict)
    except ValueError:
        return False


class CallerReviews:
    """Checks callers by their tokens. It remembers only callers that the API server allows, so that others cannot push
    them out."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()
        self._known = CallerQueue(_AT_ONCE, MAX_WAITING)
        self._others = CallerQueue(_AT_ONCE, MAX_WAITING)

    async def verdict(self, authorization: str, address: str) -> CallerVerdict:
        """What to answer to a caller from this address with this header. Both may be empty."""
        token = bearer_token(authorization)
        if not is_token(token):
            return UNKNOWN
        key = hashlib.sha256(token.encode()).hexdigest()
        if self._is_allowed(key):
            return _ALLOWED
        turn = self._known.turn(key) if key in self._until else self._others.turn(address)
        try:
            async with turn:
                if self._is_allowed(key):
                    return _ALLOWED
                verdict = await self._review(token)
        except Crowded:
            return BUSY
        except Outside as error:
            log.warning("A caller of %s cannot be checked: %s", PATH, error)
            return UNAVAILABLE
        self._remember(key, allowed=verdict == _ALLOWED)
        return verdict

    def _is_allowed(self, key: str) -> bool:
        """Whether the caller was allowed lately."""
        return self._clock.monotonic() < self._until.get(key, float("-inf"))

    async def _review(self, token: str) -> CallerVerdict:
        """Ask the API server. Raises Outside."""
        user = await user_of(self._kube, token)
        if user is None:
            return UNKNOWN
        asked = {"nonResourceAttributes": {"path": PATH, "verb": "get"}}
        return _ALLOWED if await may(self._kube, user, asked) else _FORBIDDEN

    def _remember(self, key: str, *, allowed: bool) -> None:
        self._until.pop(key, None)
        if allowed:
            self._until[key] = self._clock.monotonic() + KEPT_S
            while len(self._until) > MAX_KEPT:
                self._until.popitem(last=False)
