"""The counts of pods by kind and node, which are kept for as long as the controller runs."""

from lamina.controller.capacity.request_mix import MAX_NODES, PodKind, RequestMix
from lamina.core.host_size import HostSize


def test_pods_may_name_any_number_of_nodes() -> None:
    mix, pod = RequestMix(), PodKind(None, HostSize(100, 10))
    for number in range(MAX_NODES + 1000):
        mix.count_on_node(f"no-such-node-{number}", pod)
        mix.count_on_node("node", pod)
    assert len(mix.cpu_of_other_pods) == MAX_NODES
    assert mix.cpu_of_other_pods["node"] == 100 * (MAX_NODES + 1000)
