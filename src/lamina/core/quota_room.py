"""What the ResourceQuotas of a namespace leave to one pod: a bound on what its shares may come to over all its GPUs.

A share of a percentage is larger on a larger GPU, so the bound is asked of each GPU and of each set of GPUs that a pod
may get, and not of its request alone.
"""

from msgspec import Struct, structs


class QuotaLimit(Struct, frozen=True):
    """The tightest quota on one resource. Amounts are in MiB or in percent; `used` is what other pods hold."""

    quota: str
    resource: str
    hard: int
    used: int

    @property
    def left(self) -> int:
        return max(0, self.hard - self.used)

    def excess(self, amount: int, requester: str) -> str:
        """That the amount is more than what is left, as a sentence, or nothing."""
        if not 0 < amount > self.left:
            return ""
        allowed = f"quota {self.quota} allows {self.hard} of {self.resource}"
        return f"{allowed}; {self.used} are used and {requester} requests {amount}"


class QuotaRoom(Struct, frozen=True):
    """The limits on memory and on compute, None where no quota sets one."""

    memory: QuotaLimit | None = None
    cores: QuotaLimit | None = None

    def excess(self, memory_mib: int, cores: int, requester: str = "the pod") -> str:
        """Which quota these amounts exceed, as a sentence, or nothing. `requester` is who requests them."""
        by_memory = self.memory.excess(memory_mib, requester) if self.memory else ""
        return by_memory or (self.cores.excess(cores, requester) if self.cores else "")

    def less(self, memory_mib: int, cores: int) -> "QuotaRoom":
        """What is left when these amounts are used too."""
        memory = self.memory and structs.replace(self.memory, used=self.memory.used + memory_mib)
        return QuotaRoom(memory, self.cores and structs.replace(self.cores, used=self.cores.used + cores))

    def takes(self, memory_mib: int, cores: int) -> bool:
        """Whether the quotas allow these amounts."""
        memory = self.memory is None or not 0 < memory_mib > self.memory.left
        return memory and (self.cores is None or not 0 < cores > self.cores.left)
