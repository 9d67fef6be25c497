"""The files that hold a container to its shares."""
from pathlib import Path

from lamina.model.grants import ContainerGrant, Share


def write_limits(folder: Path, container: ContainerGrant, shares: tuple[Share, ...]) -> None:
    raise NotImplementedError
