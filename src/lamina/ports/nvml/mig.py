"""MIG through nvidia-ml-py: what a GPU can be cut into, its instances, and making and destroying them.

An instance here is a GPU instance with one compute instance of all its slices, which together are one MIG device.
"""

import ctypes
from typing import Any

import pynvml as nvml

from lamina.core.mig import Engines, MigCard, MigProfile, Placed
from lamina.core.mig_cards import mig_card
from lamina.errors import Outside
from lamina.ports.nvml.protocol import MigAttributes, MigInstanceFacts

_MAX_INSTANCES = 8
"""GPU instances of one profile."""
_HALF_MADE = ("", 0, None)


def card(handle: Any) -> MigCard:
    """What the GPU can be cut into: from the table of known cards, else as the driver tells it."""
    return mig_card(int(nvml.nvmlDeviceGetPciInfo(handle).pciDeviceId)) or _reported_card(handle)


def _reported_card(handle: Any) -> MigCard:
    profiles = []
    for index in range(nvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, index)
            places = _placements(handle, info.id)
        except nvml.NVMLError as error:
            if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT):
                continue
            raise
        name = _text(info.name).removeprefix("MIG ")
        engines = Engines(info.copyEngineCount, info.decoderCount, info.encoderCount, info.jpegCount, info.ofaCount)
        profiles.append(
            MigProfile(
                name=name,
                slices=info.sliceCount,
                size=places[0].size,
                starts=tuple(place.start for place in places),
                memory_mib=info.memorySizeMB,
                sms=info.multiprocessorCount,
                id=info.id,
                index=index,
                media=int("+me" in name),
                engines=engines,
            )
        )
    if not profiles:
        raise Outside("NVML tells no MIG profiles of this GPU")
    profiles.sort(key=lambda profile: (profile.slices, profile.size, profile.name))
    return MigCard(_text(nvml.nvmlDeviceGetName(handle)), max(p.size for p in profiles), tuple(profiles))


def _placements(handle: Any, profile: int) -> list[Any]:
    count = ctypes.c_uint(2 * _MAX_INSTANCES)
    found = (nvml.c_nvmlGpuInstancePlacement_t * count.value)()
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, found, ctypes.byref(count))
    return list(found[: count.value])


def instances(handle: Any) -> tuple[MigInstanceFacts, ...]:
    """The GPU's instances, those without a compute instance included, by their ids; none while MIG is off."""
    if not _on(handle):
        return ()
    devices = _devices(handle)
    found = []
    for profile in card(handle).profiles:
        for each in _of_profile(handle, profile.id):
            info = nvml.nvmlGpuInstanceGetInfo(each)
            device = devices.get(info.id, _HALF_MADE)
            found.append(MigInstanceFacts(info.id, profile.name, info.placement.start, *device))
    return tuple(sorted(found, key=lambda instance: instance.id))


def _of_profile(handle: Any, profile: int) -> list[Any]:
    """The GPU's instances of a profile; none where the driver is older than the profile."""
    count = ctypes.c_uint(_MAX_INSTANCES)
    found = (nvml.c_nvmlGpuInstance_t * _MAX_INSTANCES)()
    try:
        nvml.nvmlDeviceGetGpuInstances(handle, profile, found, ctypes.byref(count))
    except nvml.NVMLError as error:
        if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT):
            return []
        raise
    return list(found[: count.value])


def _devices(handle: Any) -> dict[int, tuple[str, int, MigAttributes | None]]:
    """UUIDs, numbers and attributes of the MIG devices by the ids of their GPU instances."""
    found = {}
    for index, device in handles(handle).items():
        ident = int(nvml.nvmlDeviceGetGpuInstanceId(device))
        found[ident] = _text(nvml.nvmlDeviceGetUUID(device)), index, _attributes(device)
    return found


def handles(handle: Any) -> dict[int, Any]:
    """The handles of the GPU's MIG devices by their numbers; none while MIG is off, or where there is no MIG."""
    found = {}
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if _on(handle) else 0):
        try:
            found[index] = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError as error:
            if error.value not in (nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_INVALID_ARGUMENT):
                raise
    return found


def _on(handle: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_NOT_SUPPORTED:
            return False
        raise


def _attributes(device: Any) -> MigAttributes | None:
    try:
        attributes = nvml.nvmlDeviceGetAttributes_v2(device)
    except nvml.NVMLError:
        return None
    engines = Engines(
        attributes.sharedCopyEngineCount,
        attributes.sharedDecoderCount,
        attributes.sharedEncoderCount,
        attributes.sharedJpegCount,
        attributes.sharedOfaCount,
    )
    return MigAttributes(attributes.memorySizeMB, attributes.multiprocessorCount, engines)


def set_mode(handle: Any, on: bool) -> bool:
    """Whether the mode is in force now; if not, it is pending until the GPU is idle or reset."""
    if nvml.nvmlDeviceGetMigMode(handle) != [int(on), int(on)]:
        nvml.nvmlDeviceSetMigMode(handle, int(on))
    return bool(nvml.nvmlDeviceGetMigMode(handle)[0] == int(on))


def create(handle: Any, place: Placed) -> MigInstanceFacts:
    """Make an instance, and nothing if not all of it. Raises NVMLError, Outside."""
    profile = card(handle).profile(place.profile)
    at = nvml.c_nvmlGpuInstancePlacement_t(start=place.start, size=profile.size)
    made = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(handle, profile.id, ctypes.byref(at))
    ident = int(nvml.nvmlGpuInstanceGetInfo(made).id)
    try:
        nvml.nvmlGpuInstanceCreateComputeInstance(made, _compute_profile(made, profile))
    except nvml.NVMLError:
        nvml.nvmlGpuInstanceDestroy(made)
        raise
    found = _devices(handle).get(ident)
    if found is None:
        raise Outside(f"NVML made GPU instance {ident} of profile {place.profile} but shows no MIG device of it")
    return MigInstanceFacts(ident, place.profile, place.start, *found)


def _compute_profile(instance: Any, profile: MigProfile) -> int:
    """The id of the compute profile that takes all slices of the instance."""
    for index in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, index, 0, version=1)
        except nvml.NVMLError as error:
            if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT):
                continue
            raise
        if info.sliceCount == profile.slices:
            return int(info.id)
    raise Outside(f"NVML has no compute instance profile of {profile.slices} slices for {profile.name}")


def destroy(handle: Any, ident: int) -> None:
    """Destroy a GPU instance with its compute instances; what is gone already is well. Raises NVMLError."""
    try:
        instance = nvml.nvmlDeviceGetGpuInstanceById(handle, ident)
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_NOT_FOUND:
            return
        raise
    for profile in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        for compute in _computes(instance, profile):
            nvml.nvmlComputeInstanceDestroy(compute)
    nvml.nvmlGpuInstanceDestroy(instance)


def _computes(instance: Any, index: int) -> list[Any]:
    count = ctypes.c_uint(_MAX_INSTANCES)
    handles = (nvml.c_nvmlComputeInstance_t * _MAX_INSTANCES)()
    try:
        info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, index, 0, version=1)
        nvml.nvmlGpuInstanceGetComputeInstances(instance, info.id, handles, ctypes.byref(count))
    except nvml.NVMLError as error:
        if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT):
            return []
        raise
    return list(handles[: count.value])


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
