"""The template of the GPU UUIDs in limits files."""

UUID = "GPU-{:08x}-1111-2222-3333-444455556666"
