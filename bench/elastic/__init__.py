"""Shares with a request and a limit, on a simulated machine.

compute    floors and caps of GPU time next to borrowers, and how fast lent time comes back
resizing   what a resize costs a container that works
"""
