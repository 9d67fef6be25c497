"""The MIG profiles of a simulated GPU."""

from lamina.core.mig import MigCard
from lamina.core.mig_cards import mig_card
from lamina_lab.simgpu import layout
from lamina_lab.simgpu.description import PlacedGpu


def card_of(gpu: PlacedGpu) -> MigCard | None:
    """None for a GPU without MIG."""
    return mig_card(gpu.card.pci_device) if gpu.card.mig_capable else None


def describe(record: layout.GpuRecord, gpu: PlacedGpu, first_unit: int) -> None:
    """Write the profiles of the GPU's card to its record. Its instances are the units from `first_unit` on."""
    card = card_of(gpu)
    assert card is not None
    record.first_unit = first_unit
    record.mig_slices = card.slices
    record.mig_media = card.media
    record.mig_profiles = len(card.profiles)
    for number, profile in enumerate(card.profiles):
        part = gpu.card.memory_mib * profile.size // card.slices
        record.profiles[number] = layout.MigProfileRecord(
            name=profile.name.encode(),
            id=profile.id,
            memory_mib=min(profile.memory_mib or part, part),
            sms=min(profile.sms or gpu.card.sms * profile.slices // card.profiles[-1].slices, gpu.card.sms),
            starts=sum(1 << start for start in profile.starts),
            index=profile.index,
            slices=profile.slices,
            size=profile.size,
            most=card.most(profile),
            media=profile.media,
            copy_engines=profile.engines.copy,
            decoders=profile.engines.decoders,
            encoders=profile.engines.encoders,
            jpeg=profile.engines.jpeg,
            ofa=profile.engines.ofa,
        )
