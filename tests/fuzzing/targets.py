"""What is read of users, clients and tenants, as functions of bytes: each returns, or ends in a finding.

Bad input is answered with `BadInput`, a sentence. Any other error is a finding, and so is a result that breaks what
its readers rely on. `python -m tests.fuzzing` and ClusterFuzzLite call them.
"""

import contextlib
from collections.abc import Callable

import msgspec

from lamina.admission.review import review
from lamina.configuration import DEFAULT, load
from lamina.configuration.text import to_yaml
from lamina.dialects import check_pod
from lamina.enforcement import layout, usage
from lamina.errors import BadInput

SOUND = usage.new_usage(("GPU-0",), 1).ljust(layout.usage_bytes(1), b"\0")
"""A new usage file; what `new_usage` leaves out is a hole of it."""
DESCRIBED = layout.UsageFile.slots_used.offset


def configuration(data: bytes) -> None:
    """A ConfigMap's text: what is accepted is the same after it was written and read again."""
    with contextlib.suppress(BadInput):
        accepted = load(data.decode("utf-8", "replace"), "fuzz")
        assert load(to_yaml(accepted), "written") == accepted


def pods(data: bytes) -> None:
    """The object of an AdmissionReview: a pod that is refused is refused with a sentence."""
    try:
        pod = msgspec.json.decode(data, type=dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    with contextlib.suppress(BadInput):
        check_pod(pod)
        verdict, _ = review(pod, DEFAULT)
        assert verdict.allowed or verdict.message


def usage_files(data: bytes) -> None:
    """What a tenant may write into its usage file: no figure of a device is below zero.

    The data takes the place of what follows the description of the file, so that most of it is read at all.
    """
    for written in (data, (SOUND[:DESCRIBED] + data + SOUND[DESCRIBED + len(data) :])[: len(SOUND)]):
        with contextlib.suppress(BadInput):
            read = usage.decode(written)
            assert all(min(each.held, each.peak, each.busy_ns) >= 0 for each in read.devices)


TARGETS: dict[str, Callable[[bytes], None]] = {"configuration": configuration, "pods": pods, "usage_files": usage_files}
