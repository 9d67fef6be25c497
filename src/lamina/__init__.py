"""Lamina shares NVIDIA GPUs between Kubernetes pods, and between plain processes on one machine."""

__version__ = "0.1.0"
