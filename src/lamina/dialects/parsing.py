"""From a pod to its request: which vocabulary it speaks, and that one's reading of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.dialects import cce, hami, volcano
from lamina.dialects.config import Config
from lamina.dialects.containers import Container, containers_of
from lamina.dialects.resources import vocabulary_of
from lamina.dialects.vocabularies import Vocabulary
from lamina.model.requests import PodRequest


def parse(pod: Mapping[str, Any], config: Config) -> PodRequest | None:
    """What the pod asks of GPUs, or None where it asks none. Raises BadInput with one sentence.

    The answer is the same before and after admission has filled in the defaults.
    """
    containers = containers_of(pod)
    vocabulary = spoken(containers, config)
    match vocabulary and vocabulary.dialect:
        case None:
            return None
        case "hami":
            return hami.parse(pod, containers, config)
        case "volcano":
            return volcano.parse(pod, containers, config)
        case _:
            return cce.parse(pod, containers)


def spoken(containers: Sequence[Container], config: Config) -> Vocabulary | None:
    """The vocabulary of these containers, or None where they ask no GPU. Raises BadInput for a mixture."""
    return vocabulary_of((name for container in containers for name in container.asked), config)
