"""Shares with a request and a limit, on a simulated machine."""
