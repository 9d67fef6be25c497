"""The agent's metrics.

samples           plain data: each GPU and each container's share at one moment
collection        record, folders and NVML -> samples
attribution       memory of a GPU shared by time alone -> pods
node_readings     all of it, read at one moment
families          samples -> series: Lamina's own and those of dialects
accountant        samples at regular intervals -> accounts of workloads
account_families  accounts -> series
history_families  what containers used lately -> series
server            the HTTP endpoints
"""
