"""Watches of the API server that keep the ledger, the capacity and the quotas up to date."""
