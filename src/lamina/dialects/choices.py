"""Annotations by which a pod chooses GPUs, policies and modes, whatever dialects they come from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from lamina.core.config import Config
from lamina.core.gpus import Mode
from lamina.core.policies import GPU_POLICIES, MUTEX, NODE_POLICIES, chain
from lamina.core.requests import GpuSelector
from lamina.dialects.containers import quote
from lamina.errors import BadInput
from lamina.name_hints import nearest

MAX_ANNOTATIONS, MAX_ITEMS = 1000, 256
"""The most annotations of a pod with GPUs, and the most items of a list in one: each of them has to be looked at."""
_TRUE, _FALSE = ("true", "t", "1"), ("", "false", "f", "0")


class Choices(NamedTuple):
    """What the annotations of a pod choose; policies are always named."""

    selector: GpuSelector
    node_policy: str
    gpu_policy: str
    numa_bind: bool


class ChoiceAnnotations(Struct, frozen=True, kw_only=True):
    """The keys of annotations by what they choose. Keys of one field mean the same, the first takes precedence."""

    types: tuple[str, ...] = ()
    excluded_types: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    excluded_uuids: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    mode_values: Mapping[str, Mode] = {}
    """What these annotations call each mode."""
    node_policy: tuple[str, ...] = ()
    gpu_policy: tuple[str, ...] = ()
    numa_bind: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    """Keys that cannot be honored and are refused unless they are empty."""
    guarded_prefixes: tuple[str, ...] = ()
    """An unknown key that starts with one of these is refused: it is a misspelled choice."""

    def read(self, annotations: Mapping[str, str], config: Config) -> Choices:
        """A pod's choices. Raises BadInput for a choice that cannot be honored: it would be lost silently."""
        if len(annotations) > MAX_ANNOTATIONS:
            raise BadInput(f"the pod has {len(annotations)} annotations; it may have at most {MAX_ANNOTATIONS}")
        if annotations:
            self._check_keys(annotations)
        gpu_policy = _policy(annotations, self.gpu_policy, GPU_POLICIES, config.placement.gpu_policy)
        return Choices(
            GpuSelector(
                types=_one_list(annotations, self.types, "types"),
                not_types=_all_lists(annotations, self.excluded_types),
                uuids=_one_list(annotations, self.uuids, "GPUs"),
                not_uuids=_all_lists(annotations, self.excluded_uuids),
                idle=MUTEX in chain(gpu_policy),
                modes=self._modes(annotations),
            ),
            _policy(annotations, self.node_policy, NODE_POLICIES, config.placement.node_policy),
            gpu_policy,
            any(_switch(annotations, key) for key in self.numa_bind),
        )

    def _check_keys(self, annotations: Mapping[str, str]) -> None:
        known = (*self.types, *self.excluded_types, *self.uuids, *self.excluded_uuids)
        for key, written in annotations.items():
            if key.startswith(self.guarded_prefixes) and key not in known:
                raise BadInput(f"unknown annotation {key}{nearest(key, known)}")
            if key in self.unsupported and written.strip():
                raise BadInput(f"annotation {key} is not supported; remove it")

    def _modes(self, annotations: Mapping[str, str]) -> tuple[Mode, ...]:
        """The modes that the pod accepts, by one of several keys, which have to agree; empty for all."""
        chosen: dict[str, frozenset[Mode]] = {}
        for key in self.modes:
            written = _read_list(annotations, key)
            if any(value not in self.mode_values for value in written):
                supported = list_options(self.mode_values)
                raise BadInput(f"annotation {key} must be {supported}, got {quote(annotations[key])}")
            if written:
                chosen[key] = frozenset(self.mode_values[value] for value in written)
        if len(set(chosen.values())) > 1:
            raise BadInput(f"annotations {' and '.join(chosen)} must name the same modes; keep one of them")
        return tuple(sorted(next(iter(chosen.values()), ())))


def merge(annotations: Iterable[ChoiceAnnotations]) -> ChoiceAnnotations:
    """The annotations of several dialects as one."""
    every = tuple(annotations)
    fields: dict[str, tuple[str, ...]] = {
        field: tuple(key for one in every for key in getattr(one, field))
        for field in ChoiceAnnotations.__struct_fields__
        if field != "mode_values"
    }
    values = {value: mode for one in every for value, mode in one.mode_values.items()}
    return ChoiceAnnotations(**fields, mode_values=values)


def split_list(text: str) -> tuple[str, ...]:
    """The items of a comma-separated list."""
    return tuple(item for part in text.split(",") if (item := part.strip())) if text else ()


def list_options(options: Iterable[str]) -> str:
    """The options as a sentence lists them: a, b or c."""
    *others, last = options
    return f"{', '.join(others)} or {last}" if others else last


def _all_lists(annotations: Mapping[str, str], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(item for key in keys if key in annotations for item in _read_list(annotations, key))


def _read_list(annotations: Mapping[str, str], key: str) -> tuple[str, ...]:
    """The items of the list in this annotation. Raises BadInput for a list that is too long."""
    written = annotations.get(key, "")
    if written.count(",") >= MAX_ITEMS:
        raise BadInput(f"annotation {key} has {written.count(',') + 1} items; it may have at most {MAX_ITEMS}")
    return split_list(written)


def _one_list(annotations: Mapping[str, str], keys: Sequence[str], what: str) -> tuple[str, ...]:
    """The list of one of several keys that mean the same; more than one is fine where they agree."""
    lists = {key: items for key in keys if key in annotations and (items := _read_list(annotations, key))}
    if len(set(lists.values())) > 1:
        raise BadInput(f"annotations {' and '.join(lists)} must name the same {what}; keep one of them")
    return next(iter(lists.values()), ())


def _policy(annotations: Mapping[str, str], keys: Sequence[str], allowed: Sequence[str], default: str) -> str:
    """What the first of these annotations names, else the cluster's default."""
    named = next((key for key in keys if annotations.get(key, "").strip()), "")
    policy = annotations[named].strip() if named else default
    policies = chain(policy) if allowed is GPU_POLICIES else (policy,)
    if not set(policies) <= set(allowed):
        raise BadInput(f"annotation {named} must be {list_options(allowed)}, got {quote(policy)}")
    return ",".join(policies)


def _switch(annotations: Mapping[str, str], key: str) -> bool:
    written = annotations.get(key, "").strip().lower()
    if written not in (*_TRUE, *_FALSE):
        raise BadInput(f"annotation {key} must be true or false, got {quote(written)}")
    return written in _TRUE
