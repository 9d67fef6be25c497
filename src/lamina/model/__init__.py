"""Plain data that every room shares: GPUs, requests, shares, grants, quantities. No I/O, no clock."""
