"""Whatever people, kubelet and accidents do to a node: nothing is given twice, nothing is left, no modes are mixed.

`LAMINA_EXAMPLES` is how many courses of events are tried; the default is for every run of the tests.
"""

import os

from hypothesis import HealthCheck, settings

from tests.whole_node.machine import WholeNode

WholeNode.TestCase.settings = settings(
    max_examples=int(os.environ.get("LAMINA_EXAMPLES", "6")),
    stateful_step_count=int(os.environ.get("LAMINA_STEPS", "20")),
    deadline=None,
    derandomize="LAMINA_EXAMPLES" not in os.environ,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
TestWholeNode = WholeNode.TestCase
