"""Finding GPUs for a pod: on one node, for several containers, and over all nodes."""
