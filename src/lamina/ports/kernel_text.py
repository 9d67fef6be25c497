"""Text files of the kernel in /proc and /sys, in which processes choose some of the words.

The kernel ends each line with a line feed and escapes that character in names. It does not escape the other characters
at which Python splits lines, so a process could otherwise write lines of its own by its name or by the name of a file.
"""

from pathlib import Path


def kernel_text(path: Path) -> str:
    """The content of the file; bytes that are no UTF-8 are kept as surrogates. Raises OSError."""
    return path.read_bytes().decode(errors="surrogateescape")


def kernel_lines(text: str) -> list[str]:
    """The lines that the kernel wrote."""
    return text.removesuffix("\n").split("\n") if text else []
