"""What if: a cluster dump or a trace replayed through placement, under several policies or with other nodes.

nodes, pods = read_nodes(path), read_pods(path, config)
results = [replay(nodes, pods, policy) for policy in ("binpack", "packing")]
"""

from lamina.operations.simulate.inputs import read_nodes, read_pods
from lamina.simulation.replay import Point, Result, replay
from lamina.simulation.workload import SimNode, SimPod

__all__ = ["Point", "Result", "SimNode", "SimPod", "read_nodes", "read_pods", "replay"]
