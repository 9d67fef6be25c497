"""Containers as local processes: the shim that supervises one, its environment and mounts."""
