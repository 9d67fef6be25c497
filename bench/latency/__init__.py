"""The latency of requests next to containers that keep the GPU busy, in each mode."""
