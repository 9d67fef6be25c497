"""The pods of examples/memory-limit.yaml, and programs that hold memory in them."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.scenarios.examples import smi
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

BORROWER, NEIGHBOR = "memory-limit", "memory-limit-neighbor"


@contextmanager
def holding(lab: Lab, pod: str, mib: int) -> Iterator[None]:
    """A program in the pod that holds so much and works."""
    program = ("gpu-load", "--memory-mib", str(mib), "--seconds", "600")
    with subprocess.Popen([lab.kubectl_path, "exec", pod, "--", *program], env=lab.environment) as process:
        try:
            wait_until(lambda: used(lab, pod) >= mib, lambda: smi(lab, pod))
            yield
        finally:
            process.kill()


def used(lab: Lab, pod: str) -> int:
    found = re.search(r"(\d+)MiB / +30000MiB", smi(lab, pod))
    assert found is not None, smi(lab, pod)
    return int(found[1])
