"""Secrets of Lamina's namespace, as objects and as named bytes."""

import base64
import contextlib
from collections.abc import Mapping

from lamina.ports.kube import NAMESPACES, SECRETS, AlreadyExists, Kube, NotFound, Object


def secret_object(namespace: str, name: str, content: Mapping[str, bytes]) -> Object:
    """A Secret with a certificate. `content` has at least `tls.crt` and `tls.key`."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {key: base64.b64encode(each).decode() for key, each in content.items()},
    }


def content_of(secret: Object, key: str) -> bytes:
    """What the Secret has there; empty where that is nothing or no base64, because a Secret may have been edited."""
    text = (secret.get("data") or {}).get(key)
    try:
        return base64.b64decode(text) if isinstance(text, str) else b""
    except ValueError:
        return b""


async def create_secret(kube: Kube, secret: Object) -> None:
    """Create it, and before it the namespace where that is missing. Raises Outside."""
    try:
        await kube.create(SECRETS, secret)
    except NotFound:
        with contextlib.suppress(AlreadyExists):
            await kube.create(NAMESPACES, {"metadata": {"name": secret["metadata"]["namespace"]}})
        await kube.create(SECRETS, secret)
