"""Honest pods come, work and end next to a hostile tenant, and all of them are looked at all the time.

One thread does everything in turns. What it does is drawn from a seed; when it happens depends on the machine. Unlike
the soak that kills components, it expects that each component runs on as the same process.
"""

import json
import os
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.cluster import observation
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.processes import ENVIRONMENT, SOURCES, Processes
from tests.cluster.hostile.components import MAX_MIB, changes, programs
from tests.cluster.hostile.fairness import Fairness, Work
from tests.cluster.hostile.tenant import NAMESPACE, Tenant, attack_pod
from tests.cluster.invariants import Observation, Settling, disagreements, over_committed
from tests.cluster.queries import pod

Object = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]
HONEST_AT_ONCE, HOSTILE_AT_ONCE = 8, 8
HONEST_S = 45
HOSTILE_S = (5.0, 40.0)
CORES = (10, 15, 20, 30)
MEMORY_MIB = 2000
ODD_OBJECTS, ODD_EVERY = 25, 12
"""So many odd objects are put into the cluster, once in so many looks."""
CPU = "200m"
"""What an honest pod requests, as programs do that must launch their work in time. Nodes have room for it."""
START_S = 240.0
"""The longest time in which an honest pod starts."""


def honest_pod(number: int, cores: int) -> Object:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": MEMORY_MIB, "nvidia.com/gpucores": cores}
    words = ["gpu-load", "--kernel-ms", "10", "--memory-mib", "1000", "--seconds", str(HONEST_S)]
    made: Object = json.loads(pod(f"honest-{number}", *words, limits=limits))
    made["metadata"]["labels"] = {"app": "honest"}
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": CPU}
    made["spec"]["restartPolicy"] = "Never"
    return made


class HostileSoak:
    """A run over `pods` honest ones. Afterwards: `violations` in sentences, how many of each attack were `tried`, which
    odd objects were `taken`, and `fairness`."""

    def __init__(self, cluster: RealCluster, lamina: Processes, tenant: Tenant, *, pods: int, seed: int) -> None:
        self._cluster, self._lamina, self._tenant, self._wanted = cluster, lamina, tenant, pods
        self._random = Random(seed)
        self._settling = Settling(observation.SETTLING_S)
        self._programs = programs(lamina)
        self._caps: dict[str, int] = {}
        self._made: dict[str, float] = {}
        """When each honest pod that has not started yet was made."""
        self._ends: dict[str, float] = {}
        """When each hostile pod shall go."""
        self.created = self.ended = self.looks = 0
        self.fairness = Fairness()
        self.violations: list[str] = []
        self.tried: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.most_mib: dict[str, int] = {}

    def run(self) -> None:
        """Until all honest pods were there and have ended."""
        while self.ended < self._wanted:
            self.look()
            self._make_honest()
            self._attack()
            if self.looks % ODD_EVERY == 1:
                self._plant()

    def expect(self, name: str, cores: int) -> None:
        """Compare what this pod of the namespace `default` gets with such a cap too."""
        self._caps[name] = cores

    def look(self) -> None:
        """Compare everything once."""
        self.looks += 1
        self._look_at_components()
        with suppress(Unavailable):
            observed = observation.look(self._cluster)
            self._note(over_committed(observed))
            self._note(self._settling.stays(disagreements(observed), time.monotonic()))
            self._note(self.fairness.look(time.monotonic(), self._caps_of(observed), _work(observed)))
        with suppress(Unavailable):
            self._look_at_pods(json.loads(self._cluster.kubectl("get", "pods", "-l", "app=honest", "-o", "json")))
            self._look_at_attacks(json.loads(self._cluster.kubectl("get", "pods", "-n", NAMESPACE, "-o", "json")))

    def _note(self, sentences: list[str]) -> None:
        self.violations += [sentence for sentence in sentences if sentence not in self.violations]

    def _look_at_components(self) -> None:
        now = programs(self._lamina)
        for kind in MAX_MIB:
            most = max((each.mib for name, each in now.items() if name.startswith(kind)), default=0)
            self.most_mib[kind] = max(self.most_mib.get(kind, 0), most)
        self._note(changes(self._programs, now))

    def _caps_of(self, observed: Observation) -> dict[str, int]:
        """By container: what honest pods may use of their GPU."""
        uids = {uid: each.name for uid, each in observed.pods.items() if each.namespace == "default"}
        return {
            each.id[:12]: self._caps[uids[each.pod_uid]]
            for node in observed.nodes.values()
            for each in node.containers
            if uids.get(each.pod_uid) in self._caps
        }

    def _look_at_pods(self, listed: Object) -> None:
        over = []
        for each in listed["items"]:
            name, phase = each["metadata"]["name"], each["status"].get("phase", "Pending")
            if phase == "Pending" and time.monotonic() - self._made.get(name, time.monotonic()) > START_S:
                self._note([f"the honest pod {name} has not started for {START_S:.0f} s"])
            if phase != "Pending":
                self._made.pop(name, None)
            if phase == "Failed":
                self._note([f"the honest pod {name} has failed: {each['status']}"])
            if phase in ("Failed", "Succeeded"):
                over.append(name)
        if over:
            self._cluster.kubectl("delete", "pods", *over, "--wait=false")
            self.ended += len(over)

    def _look_at_attacks(self, listed: Object) -> None:
        """A container that sees GPUs without a request ends with 7."""
        for each in listed["items"]:
            for status in each["status"].get("containerStatuses", []):
                ended = status.get("state", {}).get("terminated") or {}
                if ended.get("exitCode") == 7 and each["metadata"]["labels"]["attack"] == "peek":
                    self._note([f"{each['metadata']['name']} saw GPUs that it did not request"])

    def _make_honest(self) -> None:
        there = self.created - self.ended
        if self.created == self._wanted or there >= HONEST_AT_ONCE:
            return
        cores = self._random.choice(CORES)
        made = honest_pod(self.created, cores)
        name = made["metadata"]["name"]
        # While admission issues itself a new certificate it may be refused; it is tried again at the next look.
        with suppress(Unavailable):
            self._cluster.kubectl("create", "-f", "-", stdin=json.dumps(made))
            self.expect(name, cores)
            self._made[name] = time.monotonic()
            self.created += 1

    def _attack(self) -> None:
        over = [name for name, end in self._ends.items() if end <= time.monotonic()]
        for name in over:
            words = ["--force", "--grace-period=0"] if self._random.random() < 0.5 else []
            with suppress(Unavailable):
                self._tenant.kubectl("delete", "pod", name, "-n", NAMESPACE, "--wait=false", *words)
                del self._ends[name]
        if len(self._ends) < HOSTILE_AT_ONCE:
            made = attack_pod(self._random, sum(self.tried.values()))
            with suppress(Unavailable):
                self._tenant.kubectl("create", "-f", "-", stdin=json.dumps(made))
                self._ends[made["metadata"]["name"]] = time.monotonic() + self._random.uniform(*HOSTILE_S)
                self.tried[made["metadata"]["labels"]["attack"]] += 1

    def _plant(self) -> None:
        control = self._cluster.control
        words = [sys.executable, "-m", "tests.hostile_objects.planting", control.kubeconfig]
        environment = ENVIRONMENT | {"PYTHONPATH": f"{SOURCES}{os.pathsep}{ROOT}"}
        seed = str(self._random.randrange(1 << 32))
        with suppress(Unavailable):
            said = control.sandbox.run(*words, seed, str(ODD_OBJECTS), env=environment, timeout=120)
            self.taken += Counter({kind: int(count) for kind, _, count in (w.partition("=") for w in said.split())})


def _work(observed: Observation) -> dict[str, Work]:
    return {
        each.id[:12]: Work(each.busy_ns, each.waited_ns, each.at_work)
        for node in observed.nodes.values()
        for each in node.containers
        if each.at_work
    }
