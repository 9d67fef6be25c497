"""The port to a Prometheus: what its series are now, and what they were.

`protocol` says what can be asked, `client` asks over HTTP, and `fake` has answers for tests.
"""

from lamina.ports.prometheus.client import HttpPrometheus
from lamina.ports.prometheus.fake import FakePrometheus
from lamina.ports.prometheus.protocol import Prometheus, Sample, Series, checked_address, in_label

__all__ = ["FakePrometheus", "HttpPrometheus", "Prometheus", "Sample", "Series", "checked_address", "in_label"]
