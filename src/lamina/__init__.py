"""Lamina shares NVIDIA GPUs between Kubernetes pods, and between plain processes on one machine."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lamina")  # which version.py gave to the distribution when it was built
except PackageNotFoundError:
    __version__ = "0+unknown"  # the sources alone, which are not installed
