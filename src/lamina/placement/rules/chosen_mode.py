"""Which mode a share got and why, in words, where the node's policy left something to choose."""

from lamina.core.gpus import Mode
from lamina.core.grants import Share
from lamina.core.requests import GpuSelector
from lamina.placement.state.modes import accepted, mode_of
from lamina.placement.state.nodes import GpuState


def chosen_mode(share: Share, state: GpuState, selector: GpuSelector | None) -> str:
    """Such as "mig, 1g.5gb at slice 6: the pod accepts no other mode"; empty where the node has no policy."""
    if not state.gpu.modes:
        return ""
    named = f"{share.mode}, {share.mig.profile} at slice {share.mig.start}" if share.mig else f"{share.mode}"
    return f"{named}: {_why(mode_of(share), state, selector)}"


def _why(mode: Mode, state: GpuState, selector: GpuSelector | None) -> str:
    if len(state.modes) == 1:
        return "the node allows no other mode"
    if len(accepted(state.modes, selector)) == 1:
        return "the pod accepts no other mode"
    if state.kept is not None:
        return "the GPU is in this mode already"
    if mode is state.modes[0]:
        return "the node prefers this mode"
    return f"the mode {state.modes[0]}, which the node prefers, cannot hold the request"
