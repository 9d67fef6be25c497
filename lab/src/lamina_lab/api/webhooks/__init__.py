"""Admission webhooks and their match conditions."""
