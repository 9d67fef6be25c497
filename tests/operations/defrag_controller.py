"""A controller that only defragments."""

import dataclasses
from typing import cast

from lamina.configuration import load
from lamina.controller.assembly import Controller, assemble
from lamina.controller.configuration import LiveConfiguration
from lamina.controller.leadership.readiness import Readiness
from lamina.controller.settings import ControllerSettings
from lamina.ports.kube import EventRecorder, Kube
from tests.operations.defrag_cluster import Jumping


class Role:
    """Whether a replica leads."""

    reason = "this replica does not lead"

    def __init__(self, leads: bool = True) -> None:
        self.leads = leads

    def __bool__(self) -> bool:
        return self.leads


def controller(
    kube: Kube, clock: Jumping, moves: int = 20, identity: str = "one", role: Role | None = None
) -> Controller:
    text = f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\ndefragmentation: {{movesPerHour: {moves}}}\n"
    configuration = LiveConfiguration(load(text, "test"), text)
    events = EventRecorder(kube, "lamina", now=clock.wall)
    made = assemble(kube, clock, ControllerSettings(identity=identity), configuration, events)
    return dataclasses.replace(made, readiness=cast(Readiness, Role() if role is None else role))
