"""Pod groups, which are placed completely or not at all."""
