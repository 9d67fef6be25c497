"""Unmodified packages of PyPI under limits: each of their allocators, and their kernels."""

from collections.abc import Callable

import pytest

from tests.facade.clients.container import ClientContainer, needs, program

MakeClient = Callable[..., ClientContainer]
NEEDS = {
    "numba": ("numba-cuda",),
    "core": ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"),
    "core_graphs": ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"),
    "bindings": ("cuda-bindings", "nvidia-cuda-nvrtc"),
    "triton": ("triton", "cuda-bindings"),
}
ALLOCATORS = {
    "numba": ("device", "managed", "context"),
    "core": ("device", "pool", "virtual"),
    "bindings": ("linear", "pitched", "managed", "stream", "pool", "physical", "array"),
}


@pytest.mark.parametrize(("name", "allocator"), [(name, each) for name, all in ALLOCATORS.items() for each in all])
def test_each_allocator_comes_to_the_limit(name: str, allocator: str, client: MakeClient) -> None:
    needs(*NEEDS[name])
    client().is_full(*program(f"{name}_program"), "fill", allocator)


@pytest.mark.parametrize("cores", [30, 60])
@pytest.mark.parametrize("name", NEEDS)
def test_kernels_are_held_to_the_share(name: str, cores: int, client: MakeClient) -> None:
    needs(*NEEDS[name])
    client(cores=cores).is_held_to(cores, *program(f"{name}_program"), "work")
