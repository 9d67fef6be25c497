"""Pods come and go while parts of the cluster are killed, and all is looked at all the time.

One thread does everything in turns: look, make some, delete some, break a part, repair what was broken, change how
the last node shares its GPUs. What it does is drawn from a seed; when it happens depends on the machine. It looks as
often as it can, and changes something in steps, so that on a fast machine not all parts are broken all the time.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from tests.cluster import observation, workloads
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.processes import Processes
from tests.cluster.faults import Part, daemons, parts
from tests.cluster.invariants import Settling, disagreements, over_committed

AT_ONCE = 24
"""Workloads that are there at the same time, at most; more than the GPUs hold."""
LIFE_S = (2.0, 25.0)
STEP_S = 0.7
BROKEN_PER_STEP = 0.35
CHANGED_PER_STEP = 0.05
LABEL = "nvidia.com/device-plugin.config"


class Soak:
    """A run over `pods` workloads, while the last node shares GPUs as one of `files` says or, for an empty name, none.
    Afterwards: `violations` in sentences, what was `broken` by kind of part, the UIDs of `pods` that were seen, and the
    ids of containers that `ran` with GPUs, by how they have them."""

    def __init__(
        self,
        cluster: RealCluster,
        lamina: Processes,
        *,
        pods: int,
        seed: int,
        files: Sequence[str],
        claims: bool,
    ) -> None:
        """With `claims` some pods have ResourceClaims."""
        self._files, self._claims = files, claims
        self._cluster, self._lamina, self._wanted = cluster, lamina, pods
        self._random = Random(seed)
        self._made = 0
        self._ends: dict[int, float] = {}
        """When each workload that is there shall go."""
        self._comes_back: dict[str, tuple[float, Part]] = {}
        self._settling = Settling(observation.SETTLING_S)
        self.violations: list[str] = []
        self.broken: Counter[str] = Counter()
        self.pods: set[str] = set()
        self.ran: dict[str, str] = {}
        self.looks = 0

    def run(self) -> None:
        """Until all workloads were made and are gone, and whatever was killed is back."""
        if self._claims:
            templates = {**workloads.LIST, "items": workloads.claim_templates()}
            self._cluster.kubectl("apply", "-f", "-", stdin=json.dumps(templates))
        next_step = time.monotonic()
        while self._made < self._wanted or self._ends:
            self._look()
            self._delete()
            if self._made < self._wanted and time.monotonic() >= next_step:
                self._step()
                next_step = time.monotonic() + STEP_S
            self._repair(time.monotonic())
        self._repair(float("inf"))
        self._cluster.control.wait()
        self._repair(float("inf"))
        self._lamina.wait()

    def _step(self) -> None:
        self._make()
        self._now_and_then(self._break, BROKEN_PER_STEP)
        self._now_and_then(self._change, CHANGED_PER_STEP)

    def _now_and_then(self, do: Callable[[], None], share: float) -> None:
        if self._random.random() < share:
            do()

    def _look(self) -> None:
        try:
            observed = observation.look(self._cluster)
        except Unavailable:
            return
        self.looks += 1
        self.pods |= {*observed.pods}
        for node in observed.nodes.values():
            modes = {bound.pod_uid: str(bound.mode) for bound in node.bounds}
            modes |= {pod: "claim" for claim in node.claims for pod in claim.pods}
            self.ran |= {each.id: modes[each.pod_uid] for each in node.containers if each.pod_uid in modes}
        self._note(over_committed(observed))
        self._note(self._settling.stays(disagreements(observed), time.monotonic()))

    def _note(self, sentences: list[str]) -> None:
        self.violations += [sentence for sentence in sentences if sentence not in self.violations]

    def _make(self) -> None:
        count = min(self._random.randint(0, 8), self._wanted - self._made, AT_ONCE - len(self._ends))
        if count <= 0:
            return
        version = self._cluster.binaries.version
        items = [workloads.made(self._random, self._made + i, version, claims=self._claims) for i in range(count)]
        for number in range(self._made, self._made + count):
            self._ends[number] = time.monotonic() + self._random.uniform(*LIFE_S)
        self._made += count
        # While admission is away some or all of them are refused, as they should be.
        with suppress(Unavailable):
            self._cluster.kubectl("create", "-f", "-", stdin=json.dumps({**workloads.LIST, "items": items}))

    def _delete(self) -> None:
        now = time.monotonic()
        over = [number for number, end in self._ends.items() if end <= now]
        if not over:
            return
        words = ["delete", "pods,jobs", "-l", f"{workloads.LABEL} in ({','.join(map(str, over))})", "--wait=false"]
        if self._random.random() < 0.2:
            words += ["--force", "--grace-period=0"]
        try:
            self._cluster.kubectl(*words)
        except Unavailable:
            return
        for number in over:
            del self._ends[number]

    def _break(self) -> None:
        """Break one part that is whole, and say when it comes back."""
        found = parts(self._cluster, self._lamina, self._random)
        whole = sorted({*found} - {*self._comes_back})
        (name,) = self._random.choices(whole, [found[each].weight for each in whole])
        part = found[name]
        part.end()
        self.broken[part.kind] += 1
        if part.kind == "reboot":
            self._comes_back = {each: back for each, back in self._comes_back.items() if back[1].node != part.node}
        else:
            self._comes_back[name] = time.monotonic() + self._random.uniform(0, part.away_s), part

    def _repair(self, now: float) -> None:
        """Bring back what is due, and start what has ended by itself, as kubelet and systemd do."""
        for name, daemon in daemons(self._cluster, self._lamina).items():
            if name not in self._comes_back and not daemon.running:
                daemon.start()
                self.broken[f"{name} by itself"] += 1
        for name, (when, part) in list(self._comes_back.items()):
            if when <= now:
                part.back()
                del self._comes_back[name]

    def _change(self) -> None:
        """Let the last node share in another way. While the API server is away it stays as it is."""
        file = self._random.choice(self._files)
        with suppress(Unavailable):
            asked = f"{LABEL}={file}" if file else f"{LABEL}-"
            self._cluster.kubectl("label", "node", self._cluster.nodes[-1].name, asked, "--overwrite")
            self.broken[f"changes to {file or 'grants'}"] += 1
