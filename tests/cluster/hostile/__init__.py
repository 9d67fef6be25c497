"""A hostile tenant next to honest pods, and what must hold for these."""
