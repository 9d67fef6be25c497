"""Certificates that Lamina creates, and TLS contexts that serve them."""
