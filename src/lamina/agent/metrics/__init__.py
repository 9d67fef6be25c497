"""The agent's metrics.

collection  record, folders and NVML -> samples, all read at one moment
families    samples, accounts and histories -> series: Lamina's own and those of dialects
accountant  samples at regular intervals -> accounts of workloads, on disk
server      the HTTP endpoints
"""
