"""Placeholders in a description: values, and conditions on them.

A term can be evaluated for given values and a Kubernetes version, and written as an expression in Helm's templates.
There are few kinds of terms, so that it is easy to see that both agree; a test compares them over many values.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from lamina.errors import BadInput

Version = tuple[int, int, int]


@dataclass(frozen=True)
class Setting:
    """What a description is rendered for: `values` as plain data with all defaults, and the version of the cluster."""

    values: Mapping[str, Any]
    version: Version


class Term(ABC):
    """A value that is known at installation."""

    @abstractmethod
    def value(self, setting: Setting) -> Any: ...

    @property
    @abstractmethod
    def expression(self) -> str:
        """In Helm's templates, without braces. An operand: in parentheses if it has several words."""


@dataclass(frozen=True)
class Value(Term):
    """The value at `path`, such as `agent.driverDir`."""

    path: str

    def value(self, setting: Setting) -> Any:
        found: Any = setting.values
        for key in self.path.split("."):
            found = found[key]
        return found

    @property
    def expression(self) -> str:
        return f".Values.{self.path}"


@dataclass(frozen=True)
class Or(Term):
    """The first, or the second if the first is empty."""

    first: Term
    second: Term | str

    def value(self, setting: Setting) -> Any:
        return self.first.value(setting) or _value(self.second, setting)

    @property
    def expression(self) -> str:
        return f"({self.first.expression} | default {_expression(self.second)})"


class Joined(Term):
    """Texts and terms, concatenated."""

    def __init__(self, *parts: Term | str) -> None:
        self.parts = parts

    def value(self, setting: Setting) -> str:
        return "".join(str(_value(part, setting)) for part in self.parts)

    @property
    def expression(self) -> str:
        return f"(print {' '.join(_expression(part) for part in self.parts)})"


class ClusterVersion(Term):
    """The cluster's version as Kubernetes tags it, such as v1.29.3, without vendor suffixes."""

    def value(self, setting: Setting) -> str:
        return "v" + ".".join(map(str, setting.version))

    @property
    def expression(self) -> str:
        return '(regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version)'


@dataclass(frozen=True)
class Yaml(Term):
    """A value as a text in YAML."""

    of: Value

    def value(self, setting: Setting) -> str:
        found = self.of.value(setting)
        return yaml.safe_dump(found, default_flow_style=False, allow_unicode=True).rstrip("\n")

    @property
    def expression(self) -> str:
        return f"(toYaml {self.of.expression})"


@dataclass(frozen=True)
class ChartFile(Term):
    """A file of the chart: its text, which may have braces, or with `parsed` the data of its YAML."""

    path: str
    text: str
    parsed: bool = False

    def value(self, setting: Setting) -> Any:
        return yaml.safe_load(self.text) if self.parsed else self.text

    @property
    def expression(self) -> str:
        read = f".Files.Get {json.dumps(self.path)}"
        return f"({read} | fromYaml)" if self.parsed else f"({read})"


@dataclass(frozen=True)
class Digest(Term):
    """A hash of a value. In a pod template it makes pods restart when the value changes."""

    of: Value

    def value(self, setting: Setting) -> str:
        text = json.dumps(_as_go(self.of.value(setting)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        for sign in "<>&":
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def expression(self) -> str:
        return f"({self.of.expression} | toJson | sha256sum)"


class Condition(ABC):
    """Decides whether a part is included."""

    @abstractmethod
    def holds(self, setting: Setting) -> bool: ...

    @property
    @abstractmethod
    def expression(self) -> str: ...


@dataclass(frozen=True)
class Given(Condition):
    """The value is true, or not empty."""

    of: Term

    def holds(self, setting: Setting) -> bool:
        return bool(self.of.value(setting))

    @property
    def expression(self) -> str:
        return self.of.expression


@dataclass(frozen=True)
class Since(Condition):
    """The cluster is of this version or newer."""

    major: int
    minor: int

    def holds(self, setting: Setting) -> bool:
        return setting.version[:2] >= (self.major, self.minor)

    @property
    def expression(self) -> str:
        return f'semverCompare ">={self.major}.{self.minor}-0" .Capabilities.KubeVersion.Version'


@dataclass(frozen=True)
class When:
    """`then` if the condition holds, else `otherwise` or nothing. Stands for an entry, an item or a whole object."""

    condition: Condition
    then: Any
    otherwise: Any = None


@dataclass(frozen=True)
class Each:
    """The items of a list value, in place of one item of a list."""

    of: Value


def parse_version(text: str) -> Version:
    """The numbers of a version such as v1.29.3-gke.100. Raises BadInput."""
    found = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?![\d])", text)
    if found is None:
        raise BadInput(f"the Kubernetes version must look like 1.30.2, got {text!r}")
    return int(found[1]), int(found[2]), int(found[3] or 0)


def _value(part: Term | str, setting: Setting) -> Any:
    return part if isinstance(part, str) else part.value(setting)


def _expression(part: Term | str) -> str:
    return json.dumps(part) if isinstance(part, str) else part.expression


def _as_go(value: Any) -> Any:
    """As Go encodes it: integral numbers without a decimal point."""
    if isinstance(value, Mapping):
        return {key: _as_go(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_go(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
