"""What is used of each namespace's quotas, under the names of HAMi's scheduler.

`quota_name` is the resource that the quota limits, as HAMi has it, and `limit` what it allows, as a text.
"""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily

from lamina.control.ledger import Ledger
from lamina.control.quota_status import usage
from lamina.control.quotas import Quotas
from lamina.dialects.config import Config
from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity

_LABELS = ("namespace", "quota_name", "limit")


def families(quotas: Quotas, ledger: Ledger, config: Config) -> Iterator[GaugeMetricFamily]:
    """Both families as they are now. A quota whose limit cannot be understood is left out."""
    used = GaugeMetricFamily("hami_resource_quota_used", "What is taken of a quota, in its unit.", labels=_LABELS)
    limit = GaugeMetricFamily("hami_resource_quota_limit", "What a quota allows, in its unit.", labels=_LABELS)
    rows: dict[tuple[str, str, str], tuple[int, float]] = {}
    for namespace, quota in quotas.objects():
        for key, (taken, written) in usage(quota, ledger.taken_in(namespace), config).items():
            try:
                allowed = parse_quantity(written, where=key).value
            except BadInput:
                continue
            rows[namespace, key.removeprefix("limits."), written] = (taken, float(allowed))
    for labels, (held, most) in rows.items():
        used.add_metric(labels, held)
        limit.add_metric(labels, most)
    yield from (used, limit)
