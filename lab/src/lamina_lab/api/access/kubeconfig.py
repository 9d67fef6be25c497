"""The kubeconfig of a lab: address, certificate authority and token."""

import base64
import os
from pathlib import Path

import yaml

from lamina_lab.api.access.users import ADMIN


def render(name: str, url: str, certificate_authority: bytes, token: str) -> str:
    """`certificate_authority` is PEM."""
    encoded = base64.b64encode(certificate_authority).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": encoded}}],
        "users": [{"name": ADMIN.name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": ADMIN.name, "namespace": "default"}}],
        "current-context": name,
    }
    return yaml.safe_dump(config, sort_keys=False)


def write(path: Path, text: str) -> None:
    """Write the file atomically, readable by its owner only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
