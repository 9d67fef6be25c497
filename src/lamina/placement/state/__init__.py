"""Nodes as placement sees them: one by one, and as columns of one table."""
