"""The controllers of tainted devices: the eviction of pods, and what DeviceTaintRules say of it."""
