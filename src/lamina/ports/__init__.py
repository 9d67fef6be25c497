"""The ports to the outside: Kubernetes, NVML, kubelet, files, the clock. One small protocol each, and a fake of it."""
