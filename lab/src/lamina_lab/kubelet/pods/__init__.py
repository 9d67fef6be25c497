"""Pods on a node: one worker per pod, planning, probes and status."""
