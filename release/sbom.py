"""What a wheel brings along and what an image holds, as CycloneDX documents.

That of the wheel lists the packages of locks/image.txt with their hashes, and the libraries of the dashboard's page.
That of an image lists what its layers say is installed: the metadata of Python's packages, and dpkg's records.
"""

import email
import io
import tarfile
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from release import layers, locks

PYTHON, DEBIAN, NPM = "pypi", "deb", "npm"
PAGE_LIBRARIES = {"preact": "10.27.2", "htm": "3.1.1", "uplot": "1.6.32"}
"""What the page of the dashboard brings along, by name and version in the npm registry."""
DPKG_FOLDER = "var/lib/dpkg/status.d/"


def of_wheel(wheel: Path, version: str, epoch: int) -> str:
    """The document of a wheel: itself, and every package that is installed with it."""
    packages = [
        _package(PYTHON, name, pinned, hashes)
        for (name, pinned), hashes in locks.hashes(locks.FOLDER / "image.txt").items()
    ]
    libraries = [_package(NPM, name, pinned) for name, pinned in PAGE_LIBRARIES.items()]
    return _document(_whole(wheel.name, version, ComponentType.FILE), [*packages, *libraries], epoch)


def of_image(archive: Path, name: str, version: str, epoch: int) -> str:
    """The document of an image, from its archive."""
    found = {_package(kind, package, of) for kind, package, of in installed(archive)}
    return _document(_whole(name, version, ComponentType.CONTAINER), found, epoch)


def installed(archive: Path) -> set[tuple[str, str, str]]:
    """The kind, name and version of each package that the layers of an image record."""
    found: set[tuple[str, str, str]] = set()
    for layer in layers.read(archive).layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as files:
            for member in files:
                file = files.extractfile(member) if member.isfile() and _is_record(member.name) else None
                found |= set(_recorded(member.name, file.read().decode())) if file else set()
    return found


def _is_record(name: str) -> bool:
    return (
        name.endswith(".dist-info/METADATA")
        or name.startswith("var/lib/dpkg/status.d/")
        or name == "var/lib/dpkg/status"
    )


def _recorded(name: str, text: str) -> Iterator[tuple[str, str, str]]:
    kind, key = (PYTHON, "Name") if name.endswith("METADATA") else (DEBIAN, "Package")
    for stanza in [text] if kind == PYTHON else text.split("\n\n"):
        fields = email.message_from_string(stanza.strip())
        if fields[key]:
            yield kind, canonicalize_name(fields[key]) if kind == PYTHON else fields[key], fields["Version"]


def _package(kind: str, name: str, version: str, hashes: Iterable[str] = ()) -> Component:
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        purl=PackageURL(kind, "debian" if kind == DEBIAN else None, name, version),
        bom_ref=f"{kind}:{name}@{version}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in hashes],
    )


def _whole(name: str, version: str, kind: ComponentType) -> Component:
    return Component(name=name, version=version, type=kind, bom_ref=f"{name}@{version}")


def _document(of: Component, packages: Iterable[Component], epoch: int) -> str:
    """The same packages give the same text: its number comes from them, its time is that of the commit."""
    bom = Bom(components=packages)
    bom.metadata.component = of
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.register_dependency(of, list(bom.components))
    words = " ".join(sorted(f"{each.bom_ref}" for each in bom.components))
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"{of.name} {of.version} {words}")
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"
