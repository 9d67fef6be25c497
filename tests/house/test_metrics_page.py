"""docs/metrics.md lists exactly the series that are served."""

import re
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily

from lamina.agent.metrics import families
from lamina.control.ledger import Ledger
from lamina.control.metrics import Metrics
from lamina.control.metrics_of_quotas import families as of_quotas
from lamina.control.quotas import Quotas
from lamina.dialects.config import DEFAULT

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text()
ROWS = {
    name: tuple(re.findall(r"`([^`]+)`", labels))
    for name, labels in re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", PAGE, re.MULTILINE)
}


def test_the_agents_rows() -> None:
    ours = {
        each.name + ("_total" if each.counter else ""): families.labels(each)
        for each in (*families.GPU, *families.PARTS, *families.SHARES)
    }
    assert {name: ROWS.get(name) for name in ours} == ours


def test_the_control_parts_rows() -> None:
    def quotas() -> Iterator[GaugeMetricFamily]:
        return of_quotas(Quotas(), Ledger(), DEFAULT)

    served = Metrics(Ledger(), lambda: ("hami", "volcano"), quotas).registry.collect()
    names = {each.name + ("_total" if each.type == "counter" else "") for each in served}
    agents = {
        each.name + ("_total" if each.counter else "") for each in (*families.GPU, *families.PARTS, *families.SHARES)
    }
    assert ROWS.keys() == names | agents
