"""The lab: an embedded cluster with simulated GPUs and real processes, for a machine without either."""
