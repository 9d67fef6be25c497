"""Messages that the guides quote are messages of the code, or of Kubernetes."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/how-to/troubleshoot.md"
SOURCES = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
OF_KUBERNETES = {
    'no endpoints available for service "lamina-admission"',
    "expected at least one victim pod",
    "exceeded quota",
    "unresolvable CDI devices",
    "UnexpectedAdmissionError",
}
QUOTED = re.findall(r"^\| `([^`]+)` \|", GUIDE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("message", [message for message in QUOTED if " " in message and "kubectl" not in message])
def test_a_quoted_message_is_in_the_code(message: str) -> None:
    """What is left out of a message stands as three dots."""
    if message not in OF_KUBERNETES:
        assert [part for part in message.split("...") if part.strip(" ;,?:") and part.strip() not in SOURCES] == []


def test_messages_are_found() -> None:
    assert len(QUOTED) > 6
