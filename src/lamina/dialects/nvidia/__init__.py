"""NVIDIA's device plugin: pods count devices, and kubelet allocates them without a grant.

dialect         the names, and how the parts below make up the dialect
feature_labels  the labels of GPU feature discovery
mig_labels      those that describe MIG devices
node_gpus       what the plugin and GPU feature discovery say about the GPUs of a node
metrics         those of the DCGM exporter

The resources that pods count are in `lamina.dialects.native_devices`, since HAMi's dialect has one of them too; the
plugin's configuration is in `lamina.configuration.nvidia`.
"""

from lamina.dialects.nvidia.dialect import NvidiaDialect

__all__ = ["NvidiaDialect"]
