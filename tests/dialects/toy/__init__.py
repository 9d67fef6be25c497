"""A dialect that only tests have, written as a new one would be: one folder and one registration.

toy.example/gpu      number of GPUs
toy.example/gib      GiB per GPU; without it half of the memory
"""

from tests.dialects.toy.dialect import ToyDialect

__all__ = ["ToyDialect"]
