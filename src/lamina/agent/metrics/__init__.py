"""What the agent tells Prometheus about its node.

samples      plain data: each GPU, each container's part of a GPU, at one moment
looking      record, folders and NVML -> samples
families     samples -> series, under our own names, HAMi's and the DCGM exporter's
serving      the page
"""
