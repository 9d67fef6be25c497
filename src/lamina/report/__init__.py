"""What people see of a cluster: GPUs, shares, pods and quotas as rows, why pods wait, and what would change that.

One model for all views: tables, JSON and the page format what stands here.
"""
