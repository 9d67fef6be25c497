"""The controllers that the lab runs: workloads become pods, and silent nodes are detected."""
