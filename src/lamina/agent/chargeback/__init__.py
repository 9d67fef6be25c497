"""What workloads held and used of the node's GPUs over time, as sums that only grow.

amounts    what a pod has of one GPU at one moment, and the sums of one account
book       samples of use and the time that passed -> accounts, and the pods that are idle
histories  what their containers used lately -> peaks and percentiles
"""
