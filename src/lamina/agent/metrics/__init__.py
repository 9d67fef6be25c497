"""The agent's metrics.

collection           record, folders and NVML -> samples
node_readings        all of it, read at one moment
families             samples -> series: Lamina's own and those of dialects
accountant           samples at regular intervals -> accounts of workloads
chargeback_families  accounts and histories -> series
server               the HTTP endpoints
"""
