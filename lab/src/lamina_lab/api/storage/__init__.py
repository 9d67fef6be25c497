"""Stored objects, their history, and the verbs that read and write them."""
