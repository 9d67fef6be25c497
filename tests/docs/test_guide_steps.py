"""Every step of the executed pages is found, and those that are not executed say why."""

from pathlib import Path

import pytest

from tests.docs.guide_steps import DOCS, EXECUTED, Step, steps, steps_of

TEXT = """
# Page

    kubectl get nodes      # a comment
    lamina pods

1. Text

    which goes on.

    <!-- not executed: needs a registry -->

        docker build .
        lamina install

    lamina doctor

```yaml
    kubectl: x
```
"""


def test_commands_are_found_with_their_marks() -> None:
    assert [(step.command, step.skipped) for step in steps_of(TEXT)] == [
        ("kubectl get nodes", ""),
        ("lamina pods", ""),
        ("docker build .", "needs a registry"),
        ("lamina install", "needs a registry"),
        ("lamina doctor", ""),
    ]


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.stem)
def test_a_page_has_steps_that_are_executed(page: Path) -> None:
    assert any(not step.skipped for step in steps(page))


MARKED = [(page, step) for page in EXECUTED for step in steps(page) if step.skipped]


@pytest.mark.parametrize(("page", "step"), MARKED, ids=lambda each: getattr(each, "stem", getattr(each, "command", "")))
def test_a_step_that_is_not_executed_is_reported(page: Path, step: Step) -> None:
    pytest.skip(f"{page.relative_to(DOCS)}:{step.line}: `{step.command}` is not executed in the lab: {step.skipped}")
