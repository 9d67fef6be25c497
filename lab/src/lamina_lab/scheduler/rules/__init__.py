"""Filters and scores of nodes, as pure functions."""
