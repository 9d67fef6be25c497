"""Figures of other systems on the openb lists, mean over seeds 42 to 51: percent allocated at 100 and 130 % requested.

FGD's authors publish the runs (hkust-adsl/kubernetes-scheduler-simulator); those of lists are means over them.
"""

FGD: dict[str, tuple[float, float]] = {
    "default": (95.23, 95.39),
    "cpu050": (95.00, 95.21),
    "cpu100": (95.21, 95.35),
    "cpu200": (94.82, 95.05),
    "cpu250": (93.20, 93.41),
    "multigpu20": (95.53, 95.65),
    "multigpu30": (96.36, 96.46),
    "multigpu40": (96.91, 96.99),
    "multigpu50": (97.09, 97.18),
    "gpushare40": (93.96, 94.15),
    "gpushare60": (91.25, 91.40),
    "gpushare80": (89.08, 89.31),
    "gpushare100": (86.64, 86.90),
    "gpuspec10": (94.66, 94.95),
    "gpuspec20": (94.66, 94.84),
    "gpuspec25": (93.91, 94.74),
    "gpuspec33": (87.84, 94.55),
}

DEFAULT: dict[str, tuple[float, float]] = {
    "random": (86.30, 87.47),
    "dot-product": (90.62, 90.85),
    "clustering": (91.65, 91.88),
    "best-fit": (92.86, 93.08),
    "fgd": FGD["default"],
}
"""All policies on the default list."""


def published(trace: str, policy: str) -> tuple[float, float] | None:
    """The figures of a policy on a list, where there are any."""
    if policy == "fgd":
        return FGD.get(trace)
    return DEFAULT.get(policy) if trace == "default" else None
