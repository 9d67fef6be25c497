"""The facade's libraries for one driver.

The facade has every function of the CUDA that it was built for. A program that looks for a newer function with `dlsym`,
to learn what the driver can do, has to find what the driver has and nothing more. So each driver gets a copy of the
libraries in which the functions that it lacks are no longer defined. Everything else stays as it was built.
"""

import io
import logging
import struct
from collections.abc import Set
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection

from lamina.errors import BadInput

log = logging.getLogger(__name__)

# An entry of .dynsym: the place of the name, binding and type, visibility, section, address and size.
_ENTRY = struct.Struct("<IBBHQQ")
_WEAK = 2  # Programs may be linked with a library that leaves a weak name undefined.
_FUNCTIONS = ("STT_FUNC", "STT_GNU_IFUNC")


def fitted(facade: bytes, known: Set[str]) -> bytes:
    """The library `facade` without the functions that are not among `known`. Raises BadInput if it is no library."""
    table = _symbols(io.BytesIO(facade))
    copy = bytearray(facade)
    for index, symbol in enumerate(table.iter_symbols()):
        if _is_function(symbol) and symbol.name not in known:
            place = table["sh_offset"] + index * _ENTRY.size
            name, kind, visibility, *_ = _ENTRY.unpack_from(copy, place)
            _ENTRY.pack_into(copy, place, name, _WEAK << 4 | kind & 0xF, visibility, 0, 0, 0)
    return bytes(copy)


def functions(library: BinaryIO) -> frozenset[str]:
    """The functions that `dlsym` finds in a library. Raises BadInput if it is no library."""
    return frozenset(symbol.name for symbol in _symbols(library).iter_symbols() if _is_function(symbol))


def fitted_to(facade: bytes, driver: Path) -> bytes:
    """The library `facade` for the driver's library at `driver`.

    Where that one cannot be read, it stays as it was built, because it enforces the limits in both forms.
    """
    try:
        status = driver.stat()
        return fitted(facade, _known(driver, (status.st_ino, status.st_mtime_ns, status.st_size)))
    except (OSError, BadInput) as error:
        log.warning("Programs find all functions of CUDA in the facade, because %s cannot be read: %s", driver, error)
        return facade


@lru_cache(maxsize=8)
def _known(path: Path, _state: tuple[int, int, int]) -> frozenset[str]:
    with path.open("rb") as library:
        return functions(library)


def _is_function(symbol: Symbol) -> bool:
    return symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] in _FUNCTIONS


def _symbols(library: BinaryIO) -> SymbolTableSection:
    try:
        elf = ELFFile(library)
        table = elf.get_section_by_name(".dynsym")
    except (ELFError, UnicodeDecodeError, ValueError) as error:
        raise BadInput(f"it is not a library: {error or type(error).__name__}") from error
    if not isinstance(table, SymbolTableSection) or elf.elfclass != 64 or not elf.little_endian:
        raise BadInput("it is not a 64-bit library with a table of its functions")
    return table
