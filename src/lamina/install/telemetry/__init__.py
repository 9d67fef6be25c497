"""Dashboards for Grafana and rules for Prometheus, over the series that controller and agents serve.

Both replicas of the controller may be scraped at the moment of a failover, so queries about what is granted take the
maximum per GPU before they add up.
"""
