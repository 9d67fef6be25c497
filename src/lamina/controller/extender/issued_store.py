"""The extender's certificates in two Secrets: one for the controllers, one for kube-scheduler.

The first has all that exists, and decides. The second follows from it.
"""

from datetime import UTC, datetime

from lamina.configuration import CONFIG_MAP_NAMESPACE as NAMESPACE
from lamina.controller.extender.issued import Generation, Issued, renewed
from lamina.core.component_names import EXTENDER_CLIENT_SECRET, EXTENDER_SECRET
from lamina.errors import Outside
from lamina.ports.certificates.authority import CertifiedKey
from lamina.ports.clock import Clock
from lamina.ports.kube import SECRETS, AlreadyExists, Conflict, Kube, NotFound, Object
from lamina.ports.kube.secret_objects import content_of, create_secret, secret_object

_TRIES = 5
_PREFIXES = ("", "following-")


class IssuedStore:
    """Keeps both Secrets up to date."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock

    async def agree(self) -> Issued:
        """The certificates that all replicas use, renewed if it is time. Raises Outside."""
        for _ in range(_TRIES):
            try:
                issued = await self._read_or_renew()
                await self._write(secret_object(EXTENDER_CLIENT_SECRET, _client_content(issued)))
            except (Conflict, AlreadyExists):
                continue
            return issued
        raise Outside(f"the Secrets of the extender in {NAMESPACE} change faster than they can be updated")

    async def _read_or_renew(self) -> Issued:
        secret = await self._read(EXTENDER_SECRET)
        issued = renewed([] if secret is None else _generations(secret), self._now())
        await self._write(secret_object(EXTENDER_SECRET, _server_content(issued)), secret)
        return issued

    async def _read(self, name: str) -> Object | None:
        try:
            return await self._kube.get(SECRETS, name, namespace=NAMESPACE)
        except NotFound:
            return None

    async def _write(self, wanted: Object, present: Object | None = None) -> None:
        """Write what differs. Raises Conflict and AlreadyExists where another replica was faster."""
        present = present or await self._read(wanted["metadata"]["name"])
        if present is None:
            await create_secret(self._kube, wanted)
        elif present.get("data") != wanted["data"]:
            version = present["metadata"]["resourceVersion"]
            metadata = wanted["metadata"] | {"resourceVersion": version}
            # The type of a Secret cannot change.
            kept = {"type": present["type"]} if "type" in present else {}
            await self._kube.replace(SECRETS, wanted | kept | {"metadata": metadata})

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall(), UTC)


def _server_content(issued: Issued) -> dict[str, bytes]:
    content = {"ca.crt": issued.authorities}
    for prefix, each in zip(_PREFIXES, issued, strict=True):
        if each is not None:
            pairs = {"tls": each.server, "client": each.client}
            content[f"{prefix}authority.crt"] = each.authority
            content |= {f"{prefix}{name}.crt": pair.certificate for name, pair in pairs.items()}
            content |= {f"{prefix}{name}.key": pair.key for name, pair in pairs.items()}
    return content


def _client_content(issued: Issued) -> dict[str, bytes]:
    client = issued.current.client
    return {"ca.crt": issued.authorities, "tls.crt": client.certificate, "tls.key": client.key}


def _generations(secret: Object) -> list[Generation]:
    def pair(name: str) -> CertifiedKey:
        return CertifiedKey(content_of(secret, f"{name}.crt"), content_of(secret, f"{name}.key"))

    return [
        Generation(content_of(secret, f"{prefix}authority.crt"), pair(f"{prefix}tls"), pair(f"{prefix}client"))
        for prefix in _PREFIXES
    ]
