"""Admission of pods over HTTPS: a program of its own next to the controller, whether or not that one leads.

review               the decision about a pod, pure
service, server      the HTTP routes, and serving them over TLS with bounded `connections`
native_offers        what it knows of the cluster: which nodes offer GPUs that kubelet allocates itself
served_certificate   which certificate it serves, of those that `certificate_store` agrees on with all replicas
registration         the webhook at the API server, which the controller that leads writes
run                  the program
"""
