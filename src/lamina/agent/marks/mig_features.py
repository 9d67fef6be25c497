"""The labels of MIG devices, as GPU feature discovery has them.

With the strategy mixed each profile has labels of its own, `nvidia.com/mig-1g.5gb.*`; with single those of the one
profile take the place of `nvidia.com/gpu.*`, or say that the node is cut in a way that single has no name for.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from lamina.agent.marks.label_values import value
from lamina.agent.mig.offering import MIXED, PREFIX, SINGLE, MigDevice, problem, resource
from lamina.agent.plain import PlainKind, kind_of
from lamina.model.sharing import GPU, Sharing
from lamina.ports.nvml import GpuFacts

OF_DEVICES = ("multiprocessors", "slices.gi", "slices.ci", "engines.copy", "engines.decoder", "engines.encoder",
               "engines.jpeg", "engines.ofa")  # fmt: skip
"""What labels of MIG devices tell beside product, count, replicas, sharing-strategy and memory."""
OF_PROFILES = ("product", "count", "replicas", "sharing-strategy", "memory", *OF_DEVICES)
"""The labels of each profile, behind its resource."""
_PROFILE = re.compile(
    rf"{re.escape(PREFIX)}[0-9]+g\.[0-9]+gb([-.][a-z.]+?)?\.({'|'.join(map(re.escape, OF_PROFILES))})"
)


class Mig(NamedTuple):
    """A node's MIG devices, and how they are offered."""

    strategy: str = "none"
    devices: tuple[MigDevice, ...] = ()
    sharing: Sharing = Sharing()


def kept(name: str) -> bool:
    """Whether a label is one of a MIG profile's."""
    return _PROFILE.fullmatch(name) is not None


def labels(facts: Sequence[GpuFacts], mig: Mig) -> dict[str, str]:
    """What the strategy adds, or puts in the place of labels of whole GPUs."""
    cut = [one for one in facts if one.mig_enabled]
    if mig.strategy == SINGLE and problem(facts, mig.devices):
        zeros = dict.fromkeys(("count", "replicas", "memory"), "0")
        return _named(GPU, zeros | {"product": value(cut[0].name, "-MIG-INVALID")})
    if mig.strategy not in (SINGLE, MIXED):
        return {}
    products = {one.uuid: one.name for one in facts}
    found: dict[str, list[MigDevice]] = {}
    for each in mig.devices:
        if each.gpu in products:
            name = GPU if mig.strategy == SINGLE else resource(each.profile.name)
            found.setdefault(name, []).append(each)
    return {
        label: told
        for name, devices in found.items()
        for label, told in _named(name, _of_profile(devices, products, kind_of(name, mig.sharing))).items()
    }


def _of_profile(devices: Sequence[MigDevice], products: dict[str, str], kind: PlainKind) -> dict[str, str]:
    """The labels of equal MIG devices; what the driver does not tell is left out."""
    first = devices[0]
    profile, engines = first.profile, first.profile.engines
    suffix = "-SHARED" if kind.replicated and not kind.offer.renamed else ""
    told = {
        "count": len(devices),
        "replicas": kind.offer.replicas,
        "memory": profile.memory_mib,
        "multiprocessors": profile.sms,
        "slices.gi": profile.slices,
        "slices.ci": profile.slices,
        "engines.copy": engines.copy,
        "engines.decoder": engines.decoders,
        "engines.encoder": engines.encoders,
        "engines.jpeg": engines.jpeg,
        "engines.ofa": engines.ofa,
    }
    return {name: str(number) for name, number in told.items() if number is not None} | {
        "product": value(products[first.gpu], f"-MIG-{value(profile.name)}{suffix}"),
        "sharing-strategy": kind.strategy.value,
    }


def _named(of: str, told: dict[str, str]) -> dict[str, str]:
    return {f"{of}.{name}": text for name, text in told.items()}
