"""Evicting pods: one evictor for all, and a policy for each reason to evict."""
