"""PyTorch captures a CUDA graph and replays it: the results have to be right."""

import torch

from bench.gpu.probes.kernels import say

REPLAYS = 100


def main() -> None:
    matrix = torch.eye(256, device="cuda") * 1.01
    values = torch.ones(256, 256, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        _ = matrix @ values
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scratch = matrix @ values
        values.copy_(scratch)
    values.fill_(1)
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    expected = 1.01**REPLAYS
    say({"the result of the graph is right": abs(float(values.mean()) / expected - 1) < 0.01})


if __name__ == "__main__":
    main()
