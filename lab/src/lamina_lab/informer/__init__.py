"""Informers: a cache that watches keep up to date, and a work queue."""
