"""The HTTP side of the API server: routing, reading, writing, watching, logs and exec."""
