"""What workloads held and used of the node's GPUs over time, as sums that only grow.

amounts   sums of one account
holdings  plain data: what a pod has of one GPU at one moment
book      holdings and the time that passed -> accounts
histories what their containers used lately -> peaks and percentiles
journal   the accounts on disk
"""
