"""S2 on real kubelets: time-slicing as the document about GPU sharing on OpenShift sets it up, on two A100."""

from tests.scenarios import time_slicing as slicing
from tests.scenarios.rows import TABLE

ROWS = TABLE["S2 time-slicing"]
eleven = slicing.eleven


globals().update(ROWS.tests)
