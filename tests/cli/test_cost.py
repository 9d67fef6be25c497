"""`lamina cost`: rows with hours and cost, as a table and JSON, from what agents serve."""

import json

import pytest
import yaml

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.config import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.ports.kube import CONFIG_MAPS
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands, Ended
from tests.operations.agent_pages import serve
from tests.operations.cost.samples import account_page, account_samples
from tests.worlds.clusters import cluster, inventory

HOUR = 3600.0
PRICES = """
apiVersion: lamina.dev/v1alpha1
kind: Configuration
pricing:
  currency: EUR
  gpus: [{model: T4, perHour: 0.5}]
  labels: [team]
"""


async def counted(config: str = PRICES) -> FakeKube:
    """Two nodes have counted; the agent of a third one does not answer."""
    kube = await cluster(inventory("n"), inventory("m"), inventory("silent"))
    meta = {"name": CONFIG_MAP, "namespace": DEFAULT_NAMESPACE}
    await kube.create(CONFIG_MAPS, {"metadata": meta, "data": {CONFIG_MAP_KEY: config}})
    held = {"memory_requested": 8 * HOUR, "compute_requested": 4 * HOUR, "compute_observed": 3 * HOUR}
    held |= {"compute_used": HOUR, "compute_lent": 2 * HOUR, "compute_borrowed": 0, "gib_requested": HOUR}
    idle = {"model": "Tesla T4", "part": "memory", "figure": "idle"}
    on_n = [*account_samples("a", "web", **held), ("lamina_gpu_seconds_total", idle, 2 * HOUR)]
    serve(kube, "n", account_page("n", *on_n) + account_page("pretends", *account_samples("a", "web", **held)))
    of_team = account_samples("a", "red", label="team", memory_requested=HOUR)
    serve(kube, "m", account_page("m", *account_samples("b", "job", memory_requested=HOUR), *of_team))
    return kube


async def run(monkeypatch: pytest.MonkeyPatch, kube: FakeKube, *options: str) -> Ended:
    return await Commands(monkeypatch, kube).run("cost", *options)


async def test_the_table_has_a_row_for_each_namespace_and_what_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    head, *rows, meaning, memory, compute, silent = (await run(monkeypatch, await counted())).output.splitlines()
    assert head.split()[0] == "NAMESPACE" and head.split()[-1] == "COST"
    assert [" ".join(row.split()) for row in rows] == [
        "a 8.00 4.00 1.00 2.00 1.00 3.00 EUR",
        "b 1.00 0.00 - - 0.00 0.25 EUR",
        "(idle) 2.00 0.00 - - 0.00 0.50 EUR",
    ]
    assert memory == "Use of memory is known for 0.00 of 9.00 requested GPU-hours, and only of these."
    assert compute == "Use of compute is known for 3.00 of 4.00 requested GPU-hours, and only of these."
    assert "GPU-hours" in meaning and "silent" in silent


async def test_json_has_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await run(monkeypatch, await counted(), "--by", "workload", "-n", "a", "-o", "json")
    document = json.loads(ended.output)
    [row] = document.pop("rows")
    assert document == {"currency": "EUR", "idle": None, "silentNodes": ["silent"]}
    assert (row["kind"], row["workload"], row["memoryRequested"], row["cost"]) == ("Deployment", "web", 8.0, 3.0)


async def test_yaml_is_the_same_document(monkeypatch: pytest.MonkeyPatch) -> None:
    as_json, as_yaml = [(await run(monkeypatch, await counted(), "-o", form)).output for form in ("json", "yaml")]
    assert yaml.safe_load(as_yaml) == json.loads(as_json)


async def test_values_of_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (await run(monkeypatch, await counted(), "--by", "label", "--label", "team")).rows
    assert rows[1][:2] == ["red", "1.00"]


async def test_without_prices_cost_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await run(monkeypatch, await counted(PRICES.partition("pricing")[0]))
    assert ended.rows[1][-1] == "-"
    assert "set pricing.gpus in the configuration" in ended.output
    assert "pricing.gpus" not in (await run(monkeypatch, await counted())).output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--by", "pod"), "--by must be one of namespace, workload, label"),
        (("-o", "wide"), "--output must be one of table, json, yaml"),
        (("--by", "label"), "--by label needs the label itself"),
        (("--label", "team"), "--by label needs the label itself"),
        (("--since", "1d"), "--since and --prometheus need each other"),
        (("--since", "1", "--prometheus", "http://h"), "--since must be a number"),
        (("--by", "label", "--label", "x"), "has no accounts"),
    ],
)
async def test_options_that_make_no_sense(
    options: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = await run(monkeypatch, await counted(), *options)
    assert ended.code == 2 and sentence in ended.error
