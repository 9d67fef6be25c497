"""Images made of files: an archive in the layout that the Open Container Initiative laid down, of one layer.

Two archives of the same files are equal, byte for byte: times are zero, owners root, names sorted.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


def write(
    target: Path,
    name: str,
    root: Path,
    *,
    entrypoint: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    architecture: str = "amd64",
) -> Path:
    """Write an archive of the files below `root` as the image `name`, such as ``stage.local/pause:1``."""
    draft = target.with_name(f"{target.name}.new")
    layer = draft.with_name(f"{draft.name}.layer")
    _write_layer(layer, root)
    digest = _digest_of(layer)
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": list(entrypoint), "Env": [f"{key}={value}" for key, value in (env or {}).items()]},
        "rootfs": {"type": "layers", "diff_ids": [digest]},
        "history": [{"created_by": "lamina tests"}],
    }
    blobs = {"config": _encoded(config)}
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _described(_CONFIG, blobs["config"]),
        "layers": [{"mediaType": _LAYER, "digest": digest, "size": layer.stat().st_size}],
    }
    blobs["manifest"] = _encoded(manifest)
    named = _described(_MANIFEST, blobs["manifest"]) | {"annotations": {"io.containerd.image.name": name}}
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [named]}
    with tarfile.open(draft, "w") as archive:
        _add(archive, "oci-layout", _encoded({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", _encoded(index))
        for blob in blobs.values():
            _add(archive, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
        archive.add(layer, f"blobs/sha256/{digest.partition(':')[2]}", filter=_anonymous)
    layer.unlink()
    draft.rename(target)
    return target


def _write_layer(target: Path, root: Path) -> None:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as layer:
        for path in sorted(root.rglob("*")):
            layer.add(path, str(path.relative_to(root)), recursive=False, filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = 0
    return entry


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _described(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
