"""S3.8: Table 1 of "Improving GPU Utilization in Kubernetes" as advice and as a table."""

import html
import re

import pytest
import yaml
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.configuration import DEFAULT
from lamina.dialects import parse
from lamina.operations.advise.mechanisms import TABLE, Mechanism, Needs, advise
from tests.seeds import seed

SAID = ("--several", "--no-vms", "--no-renders", "--no-isolated", "--no-concurrent")


def advised(*arguments: str, answers: str = "") -> tuple[str, dict[str, object]]:
    """The mechanism that is named first, and the manifest's limits."""
    result = CliRunner().invoke(app, ["advise", *arguments], input=answers)
    assert result.exit_code == 0, result.output
    text = result.output[result.output.rfind("? ") + 1 :] if answers else result.output
    found = re.search(r"(streams|quota|MPS|time-slicing|MIG|vGPU|whole GPU): ", text)
    assert found
    manifest = text.partition("apiVersion")[2]
    limits = yaml.safe_load(f"apiVersion{manifest}")["spec"]["containers"][0]["resources"]["limits"] if manifest else {}
    return found[1], limits


@pytest.mark.parametrize(
    ("arguments", "mechanism", "limits"),
    [
        ([*SAID, "--memory", "3000", "--cores", "30"], "quota",
         {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}),
        ([*SAID, "--memory", "0", "--cores", "30"], "quota", {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30}),
        ([*SAID, "--memory", "0"], "time-slicing", {"nvidia.com/gpu": 1}),
        (["--one-program"], "streams", {"nvidia.com/gpu": 1}),
        (["--several", "--vms"], "vGPU", {}),
        (["--several", "--no-vms", "--no-renders", "--no-isolated", "--concurrent"], "MPS", {"nvidia.com/gpu": 1}),
        (["--several", "--no-vms", "--renders"], "whole GPU", {"nvidia.com/gpu": 1}),
        (
            ["--several", "--no-vms", "--no-renders", "--isolated", "--memory", "3000"],
            "whole GPU", {"nvidia.com/gpu": 1},
        ),
    ],
)  # fmt: skip
def test_s3_8_options(arguments: list[str], mechanism: str, limits: dict[str, object]) -> None:
    assert advised(*arguments) == (mechanism, limits)


def test_s3_8_questions() -> None:
    assert advised(answers="n\nn\nn\nn\nn\n5000\n") == ("quota", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 5000})
    assert advised(answers="y\n") == ("streams", {"nvidia.com/gpu": 1})


def test_s3_8_mig_is_the_smallest_profile_that_holds_the_memory() -> None:
    from lamina.core.mig_cards import MIG_CARDS

    for name, card in MIG_CARDS.items():
        for profile in card.profiles:
            if not profile.base or profile.memory_mib is None:  # no source tells its memory
                continue
            advice = advise(Needs(hardware=True, card=name, memory_mib=profile.memory_mib))
            (resource,) = advice.limits
            chosen = card.profile(resource.removeprefix("nvidia.com/mig-"))
            assert chosen.memory_mib == profile.memory_mib
    assert advise(Needs(hardware=True, card=name, memory_mib=10**7)).mechanism is Mechanism.WHOLE


def test_s3_8_a_card_that_is_not_known_is_refused() -> None:
    result = CliRunner().invoke(app, ["advise", "--card", "T4"])
    assert "--card must be one of" in str(result.exception)


def test_s3_8_what_is_advised_is_admitted() -> None:
    for needs in (Needs(one_program=True), Needs(memory_mib=3000, cores=30), Needs(concurrent=True)):
        container = {"name": "main", "resources": {"limits": dict(advise(needs).limits)}}
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
        assert parse(pod, DEFAULT) is not None


def test_s3_8_the_table_has_the_seeds_rows_and_mechanisms() -> None:
    shown = CliRunner().invoke(app, ["advise", "--table"]).output
    text = re.sub(r"<[^>]*>|\W", "", seed("003")).casefold()
    for row, cells in TABLE.items():
        assert row in shown
        assert re.sub(r"\W", "", row).casefold() in text
        assert set(cells) == {m for m in Mechanism if m is not Mechanism.WHOLE}


def test_s3_8_each_cell_is_the_documents() -> None:
    """Word for word, but for the last two rows, which are shorter here."""

    def words(cell: str) -> str:
        return re.sub(r"<[^>]*>|\band\b|\W", "", html.unescape(cell).casefold())

    table = seed("003").partition("<table>")[2].partition("</table>")[0]
    _, *rows = ([words(cell) for cell in row.split("</td>")[1:-1]] for row in table.split("</tr>")[:-1])
    columns = (Mechanism.STREAMS, Mechanism.MPS, Mechanism.TIME_SLICING, Mechanism.MIG, Mechanism.VGPU)
    found = [[words(cells[each]) for each in columns] for cells in TABLE.values()]
    assert found[:8] == rows[:8]
    telemetry = zip(found[8], rows[8], strict=True)
    assert all(theirs.startswith(re.match("na|limited|yes", ours)[0]) for ours, theirs in telemetry)
    assert len(found) == len(rows) == 10
