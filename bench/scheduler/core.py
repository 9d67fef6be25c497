"""Scheduler without HTTP: one filter over all nodes, at different numbers of nodes, and whole placements."""

import gc
import random
import statistics
import time
from collections.abc import Callable

from bench.scheduler import cluster
from lamina.config_source.live import LiveConfiguration
from lamina.configuration import DEFAULT
from lamina.controller.capacity.cluster_state import ClusterState
from lamina.controller.scheduling.scheduler import Scheduler
from lamina.dialects import parse
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.holds import Hold
from lamina.ledger.pod_stages import pod_state
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ledger.quotas import ResourceQuotas
from lamina.placement import PodPlacement, fit
from lamina.ports.kube import Object


class Core:
    """Ledger and decisions of a cluster with four pods on each node."""

    def __init__(self, nodes: int) -> None:
        self.names = [cluster.node_name(number) for number in range(nodes)]
        self.cluster_state = ClusterState(LiveConfiguration(DEFAULT, ""))
        self.scheduler = Scheduler(self.cluster_state, ResourceQuotas(), LiveConfiguration(DEFAULT, ""))
        ledger = self.cluster_state.ledger
        for number in range(nodes):
            ledger.observe_inventory(cluster.inventory(number))
        for pod, grant in cluster.running(nodes, 4 * nodes):
            ledger.observe_pod(pod["metadata"]["uid"], pod_state(pod), 0.0)
            ledger.observe_grant(grant_record(grant))
        self._draw = random.Random(1)
        gc.collect()
        gc.freeze()

    def take(self, pod: ParsedPod, node: str) -> None:
        """Decide the shares on the node and take them, as a bind does."""
        assert pod.request is not None
        placement = self.scheduler.place(pod, pod.request, node)
        if isinstance(placement, PodPlacement):
            shares = Hold.of_shares(pod.uid, "default", pod.name, node, placement.containers, 0.0)
            self.cluster_state.ledger.hold(shares)

    def filters(self, count: int, kind: Callable[[int], Object]) -> list[float]:
        """Seconds of each filter; between two of them a pod is placed somewhere."""
        taken = []
        for number in range(count):
            obj = kind(number)
            self._draw.shuffle(self.names)
            began = time.thread_time()
            pod = parse_pod(obj, DEFAULT)
            fitting = self.scheduler.filter(pod, self.names).fitting
            taken.append(time.thread_time() - began)
            if fitting:
                self.take(pod, self._draw.choice(fitting))
        return taken

    def walks(self, count: int) -> list[float]:
        """Seconds of each filter that asks every node, with nothing kept: the null control."""
        taken = []
        for number in range(count):
            request = parse(cluster.new_pod(f"new-{number}"), DEFAULT)
            assert request is not None
            began = time.thread_time()
            for name in self.names:
                state = self.cluster_state.state(name, without="")
                if state is not None:
                    fit(request, state)
            taken.append(time.thread_time() - began)
        return taken

    def placements_per_s(self, count: int, nodes: int) -> float:
        """Whole placements a second: filter and prioritize over `nodes` nodes, then decide and take."""
        names = self.names[:nodes]
        began = time.thread_time()
        for number in range(count):
            pod = parse_pod(cluster.new_pod(f"new-{100_000 + number}"), DEFAULT)
            if best := self.scheduler.scores(pod, self.scheduler.filter(pod, names).fitting).best:
                self.take(pod, best)
        return count / (time.thread_time() - began)

    def decisions_per_s(self, count: int) -> float:
        """The placement core alone: which shares a pod gets on one node, taken at once."""
        pods = [parse_pod(cluster.new_pod(f"new-{number}"), DEFAULT) for number in range(200)]
        began = time.thread_time()
        for number in range(count):
            pod = pods[number % 200]
            assert pod.request is not None
            node = self._draw.choice(self.names)
            placement = self.scheduler.place(pod, pod.request, node)
            if isinstance(placement, PodPlacement):
                shares = Hold.of_shares(f"u{number}", "default", "p", node, placement.containers, 0.0)
                self.cluster_state.ledger.hold(shares)
        return count / (time.thread_time() - began)


def known(number: int) -> Object:
    """One of the kinds of pods that come all the time."""
    return cluster.new_pod(f"new-{number}")


def unknown(number: int) -> Object:
    """A pod of a kind that was not seen before."""
    return cluster.pod(f"odd-{number}", {"gpu": 1 + number % 3, "gpumem": 20_001 + number})


def hopeless(number: int) -> Object:
    """A pod that fits on no node and has not been seen before."""
    return cluster.pod(f"big-{number}", {"gpu": 8, "gpumem": 81_000 + number % 900, "gpucores": 90})


def p99(seconds: list[float]) -> float:
    """In milliseconds."""
    return statistics.quantiles(seconds, n=100)[98] * 1e3 if len(seconds) > 1 else seconds[0] * 1e3
