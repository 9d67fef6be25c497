"""The rules of sharing: why one GPU does not take one container."""
