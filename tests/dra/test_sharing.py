"""What parameters of a request mean for a whole GPU, a share and a MIG device."""

import pytest

from lamina.core.gpus import Mode
from lamina.core.grants import Share
from lamina.core.sharing import TimeSlice
from lamina.dra.claims import ClaimedDevice
from lamina.dra.offers import OfferedDevice
from lamina.dra.parameters import MpsParameters, SharingParameters
from lamina.dra.shares import RequestShares
from lamina.dra.sharing import RequestMps, RequestSharing, request_sharing
from lamina.errors import BadInput

GPU, MIG = "GPU-0", "MIG-0"
KNOWN = {
    name: OfferedDevice(name=name, kind=kind, uuid=uuid, gpu=GPU, index=0, memory_mib=memory, document={})
    for name, kind, uuid, memory in (("gpu-0", "gpu", GPU, 40960), ("gpu-0-mig-1g5gb-19-0", "mig", MIG, 4864))
}
MODES = {
    Mode.WHOLE: ("gpu-0", GPU, 40960),
    Mode.QUOTA: ("gpu-0", GPU, 4096),
    Mode.MIG: ("gpu-0-mig-1g5gb-19-0", MIG, 4864),
}


def wanted(mode: Mode, parameters: SharingParameters) -> RequestSharing:
    name, uuid, memory = MODES[mode]
    device = ClaimedDevice(request="gpu", device=name, pool="node")
    shares = RequestShares(shares=(Share(gpu=uuid, memory_mib=memory, mode=mode),))
    return request_sharing("gpu", parameters, shares, [device], KNOWN)


@pytest.mark.parametrize("mode", MODES)
def test_without_parameters_nothing_is_done(mode: Mode) -> None:
    assert wanted(mode, SharingParameters()) == RequestSharing()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [None, 1024, 4096, 4864, 40960, 50000])
@pytest.mark.parametrize("percent", [None, 1, 100])
def test_a_client_never_has_more_than_the_device_or_the_share(
    mode: Mode, limit: int | None, percent: int | None
) -> None:
    found = wanted(mode, SharingParameters(mps=MpsParameters(memory_mib=limit, threads_percent=percent))).mps
    _, uuid, memory = MODES[mode]
    assert found == RequestMps(
        gpu=uuid,
        memory_mib=min(limit or memory, memory),
        threads_percent=percent or 100,
        exclusive=mode is Mode.WHOLE,
    )


@pytest.mark.parametrize("mode", MODES)
def test_only_a_whole_gpu_has_turns_of_its_own(mode: Mode) -> None:
    parameters = SharingParameters(interval=TimeSlice.MEDIUM)
    if mode is Mode.WHOLE:
        assert wanted(mode, parameters) == RequestSharing(interval=TimeSlice.MEDIUM)
        return
    with pytest.raises(BadInput, match="request gpu: the interval Medium would apply to all claims on the GPU"):
        wanted(mode, parameters)
