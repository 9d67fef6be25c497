"""Which labels make a node one of another system."""

import pytest

from lamina.core.nodes import kept_out


@pytest.mark.parametrize(
    ("labels", "answer"),
    [
        (None, False),
        ({}, False),
        ({"lamina.dev/agent": "true"}, False),
        ({"lamina.dev/agent": "false"}, True),
        ({"nvidia.com/gpu.deploy.device-plugin": "false"}, False),
        ({"nvidia.com/gpu.deploy.device-plugin": "true", "gpu": "on"}, True),
        ({"nvidia.com/gpu.deploy.device-plugin": "paused-for-mig-change"}, True),
    ],
)
def test_labels(labels: dict[str, str] | None, answer: bool) -> None:
    assert kept_out(labels) is answer
