"""Kubernetes' protobuf encoding, which some commands of kubectl send."""
