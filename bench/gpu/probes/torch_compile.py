"""PyTorch compiles a function with Triton and runs it: the results have to be right."""

import torch

from bench.gpu.probes.kernels import say


def curve(x: torch.Tensor) -> torch.Tensor:
    """What is compiled into one kernel."""
    return (x * 2 + 1).sin() * x.cos()


def main() -> None:
    values = torch.linspace(0, 1, 1 << 20, device="cuda")
    compiled = torch.compile(curve)(values)
    say({"the result of the kernel is right": torch.allclose(compiled, curve(values), atol=1e-5)})


if __name__ == "__main__":
    main()
