"""The scheduler at work on a cluster that exists in memory only: nodes, pods that come and go, and the policies."""
