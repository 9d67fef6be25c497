"""How fast the dashboard shows a large cluster, in a real browser."""
