"""Tokens of service accounts: JSON web tokens that the API server signs and checks itself.

A token holds until it expires, and while its account, and the pod or secret to which it is bound, exist as they were.
"""

import base64
import hashlib
import hmac
import secrets
import uuid
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339
from lamina_lab.api.access.users import User, service_account
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.api.storage.store import Store
from lamina_lab.kubernetes.errors import (
    bad_request,
    conflict,
    invalid,
    invalid_value,
    unsupported_value,
)

AUDIENCE = "https://kubernetes.default.svc.cluster.local"
"""Of tokens for the API server itself."""
_DEFAULT_S, _MIN_S, _MAX_S = 3600, 600, 2**32
_BOUND = {"Pod": "pods", "Secret": "secrets"}
_EXTRA = "authentication.kubernetes.io"


class TokenHolder(NamedTuple):
    """Whose a token is, and for which audiences."""

    user: User
    audiences: tuple[str, ...]


class AccountTokens:
    """Issues tokens for the accounts of `store` and checks them."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._key = secrets.token_bytes(32)

    def issue(self, namespace: str, name: str, asked: Any) -> Object:
        """The answer to a TokenRequest. Raises 400, 404, 409 and 422."""
        account = self._store.get(self._catalog.named("serviceaccounts"), namespace, name)
        spec = _spec(asked)
        audiences, seconds = spec.get("audiences") or [AUDIENCE], spec.get("expirationSeconds") or _DEFAULT_S
        _check(name, seconds)
        now = int(self._store.clock())
        own: Object = {"namespace": namespace, "serviceaccount": {"name": name, "uid": account.meta["uid"]}}
        if bound := spec.get("boundObjectRef"):
            own |= self._bound(namespace, name, bound)
        claims = {"aud": audiences, "exp": now + seconds, "iat": now, "nbf": now, "iss": AUDIENCE, "kubernetes.io": own}
        claims |= {"jti": str(uuid.uuid4()), "sub": f"system:serviceaccount:{namespace}:{name}"}
        status = {"token": self._signed(claims), "expirationTimestamp": rfc3339(now + seconds)}
        full = {**spec, "audiences": audiences, "expirationSeconds": seconds}
        meta = {"name": name, "namespace": namespace, "creationTimestamp": self._store.now()}
        kind = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        return {**kind, "metadata": meta, "spec": full, "status": status}

    def holder(self, token: str, audiences: Collection[str] = ()) -> TokenHolder | None:
        """Whose token this is, if it holds for one of the audiences, by default the API server itself."""
        claims = self._claims(token)
        if claims is None or not claims["nbf"] <= self._store.clock() < claims["exp"]:
            return None
        common = tuple(each for each in claims["aud"] if each in (audiences or (AUDIENCE,)))
        own = claims["kubernetes.io"]
        if not common or not self._exists("serviceaccounts", own["namespace"], own["serviceaccount"]):
            return None
        extra: dict[str, tuple[str, ...]] = {f"{_EXTRA}/credential-id": (f"JTI={claims['jti']}",)}
        for kind, plural in _BOUND.items():
            if bound := own.get(kind.lower()):
                if not self._exists(plural, own["namespace"], bound):
                    return None
                if kind == "Pod":
                    extra |= {f"{_EXTRA}/pod-name": (bound["name"],), f"{_EXTRA}/pod-uid": (bound["uid"],)}
        account = own["serviceaccount"]
        return TokenHolder(service_account(own["namespace"], account["name"], account["uid"], extra), common)

    def _bound(self, namespace: str, account: str, bound: Any) -> Object:
        kind, name = (bound.get(key) or "" for key in ("kind", "name")) if isinstance(bound, dict) else ("", "")
        if kind not in _BOUND:
            raise invalid("TokenRequest", "authentication.k8s.io", account, [_unsupported(kind)])
        version = self._store.get(self._catalog.named(_BOUND[kind]), namespace, name)
        uid = version.meta["uid"]
        if bound.get("uid") not in (None, "", uid):
            why = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record ({uid})"
            raise conflict(_BOUND[kind], "", name, f"{why}. The object might have been deleted and then recreated")
        if kind == "Pod" and (version.obj["spec"].get("serviceAccountName") or "default") != account:
            raise bad_request(f"cannot bind token for serviceaccount {account!r} to pod running with another one")
        return {kind.lower(): {"name": name, "uid": uid}}

    def _exists(self, plural: str, namespace: str, wanted: Object) -> bool:
        found = self._store.find(self._catalog.named(plural), namespace, wanted["name"])
        return found is not None and found.meta["uid"] == wanted["uid"]

    def _signed(self, claims: Object) -> str:
        head, body = (_encoded(msgspec.json.encode(each)) for each in ({"alg": "HS256", "typ": "JWT"}, claims))
        return f"{head}.{body}.{self._signature(f'{head}.{body}')}"

    def _claims(self, token: str) -> Any:
        """What a token of this server says; None where it is another's."""
        text, _, signature = token.rpartition(".")
        if not text or not hmac.compare_digest(signature.encode(), self._signature(text).encode()):
            return None
        body = text.partition(".")[2]
        return msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))

    def _signature(self, text: str) -> str:
        return _encoded(hmac.new(self._key, text.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _spec(asked: Any) -> Object:
    spec = asked.get("spec") or {} if isinstance(asked, dict) else None
    if not isinstance(spec, dict):
        raise bad_request("the body must be a TokenRequest object")
    return spec


def _check(name: str, seconds: Any) -> None:
    detail = ""
    if not isinstance(seconds, int) or seconds < _MIN_S:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > _MAX_S:
        detail = "may not specify a duration larger than 2^32 seconds"
    if detail:
        cause = invalid_value("spec.expirationSeconds", seconds, detail)
        raise invalid("TokenRequest", "authentication.k8s.io", name, [cause])


def _unsupported(kind: str) -> Any:
    return unsupported_value("spec.boundObjectRef.kind", kind, _BOUND)
