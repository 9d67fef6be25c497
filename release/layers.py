"""An image's archive in the layout of the Open Container Initiative, read."""

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Archive:
    named: dict[str, Any]
    """What the index says of its only image: its digest, size and names."""
    config: dict[str, Any]
    layers: tuple[bytes, ...]
    """Of the base first; each is a tar archive, which may be compressed."""
    digests: tuple[str, ...]
    """Of the layers as they lie in the archive."""


def read(archive: Path) -> Archive:
    """Raises ValueError where a part is not what its digest says."""
    with tarfile.open(archive) as parts:
        files = {member.name.removeprefix("./"): parts.extractfile(member) for member in parts}
        content = {name: file.read() for name, file in files.items() if file}

    def blob(digest: str) -> bytes:
        found = content[f"blobs/{digest.replace(':', '/')}"]
        if digest != f"sha256:{hashlib.sha256(found).hexdigest()}":
            raise ValueError(f"{archive}: a part is not {digest}, as which it lies there")
        return found

    (named,) = json.loads(content["index.json"])["manifests"]
    manifest = json.loads(blob(named["digest"]))
    digests = tuple(layer["digest"] for layer in manifest["layers"])
    return Archive(named, json.loads(blob(manifest["config"]["digest"])), tuple(map(blob, digests)), digests)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of all layers below a folder."""
    for content in read(archive).layers:
        with tarfile.open(fileobj=io.BytesIO(content)) as layer:
            # As an attribute and not as an argument: Python up to 3.11.3 has no filters.
            layer.extraction_filter = getattr(tarfile, "tar_filter", None)
            layer.extractall(folder)
