"""Certificates that Lamina creates, Secrets that keep them, and TLS contexts that serve them."""
