"""MIG within placement: which partitions a GPU can get, and where."""
