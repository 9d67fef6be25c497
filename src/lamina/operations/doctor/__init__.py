"""`lamina doctor`: whether a cluster has what Lamina needs, and how to fix what is missing."""
