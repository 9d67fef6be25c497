"""`lamina cost`: what workloads requested and used of GPUs over time, and what that costs.

accounts    samples of the agents or of Prometheus -> sums of the cluster; the totals that agents serve
prometheus  what grew within a time, from a Prometheus
rows        sums and prices -> rows
"""
