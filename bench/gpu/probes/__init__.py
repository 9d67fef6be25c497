"""Programs that ask the driver through ctypes; each prints its facts as a line of JSON, and knows nothing of limits."""
