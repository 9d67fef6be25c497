"""Why nodes do not fit, in sentences with numbers."""
