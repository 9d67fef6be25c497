"""The agent's metrics.

samples      plain data: each GPU and each container's share at one moment
collection   record, folders and NVML -> samples
attribution  memory of a GPU shared by time alone -> pods
families     samples -> series: Lamina's own and those of dialects
server       the HTTP endpoints
"""
