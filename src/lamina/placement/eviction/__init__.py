"""Which pods to evict or move so that others fit."""
