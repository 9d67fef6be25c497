"""Policies over shares as HAMi's users ask them: `python -m bench.shares`, see `__main__`."""
