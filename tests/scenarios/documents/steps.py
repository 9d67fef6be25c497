"""What a reader of a document does with each of its blocks of text in fixed width: the words of the scripts.

A script names every block of its document in order. `begins` is how the block begins, so that scripts can be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    begins: str


@dataclass(frozen=True)
class Runs(Step):
    """Commands, with or without a prompt. `instead` takes their place where a difference of the page has the reason."""

    instead: str = ""
    because: str = ""
    shows: str = ""
    """A pattern of what commands that only read print, sooner or later."""
    fails: str = ""
    """A pattern of what the commands print where they are to be refused."""


@dataclass(frozen=True)
class Adds:
    """Commands that the document leaves out, with the difference of the page that has the reason."""

    command: str
    because: str
    shows: str = ""


@dataclass(frozen=True)
class Saves(Step):
    """The content of a file. `first` is what the document leaves out at its beginning."""

    file: str
    first: str = ""


@dataclass(frozen=True)
class Applies(Step):
    """A manifest, for `kubectl apply`. `first` is what the document leaves out at its beginning."""

    first: str = ""


@dataclass(frozen=True)
class Edits(Step):
    """A line that a file gets in place of another one: the amount of `key`."""

    file: str
    key: str


@dataclass(frozen=True)
class Prints(Step):
    """What the commands before it print, as soon as they do.

    `differs` has patterns of the document's lines that are not printed here, and `more` those of lines that are printed
    here alone, each with the difference of the page that has the reason. `whole` is off where the document shows an
    extract.
    """

    differs: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True
    of: str = ""
    """The command that prints it, where the document does not show it."""
    because: str = ""
    """The difference that such a command is."""


@dataclass(frozen=True)
class Session(Prints):
    """Commands after their prompts, and what each prints. Those of `instead` take the place of the document's."""

    instead: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reads(Step):
    """Something that a reader reads only; `because` is the difference of the page, where it is one."""

    because: str = ""
