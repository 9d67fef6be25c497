"""Plain data that all packages share: GPUs, requests, shares, grants, quantities. No I/O, no clock."""
