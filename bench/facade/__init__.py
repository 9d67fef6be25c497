"""What the facade costs and holds, compared with no facade at all, on a simulated machine."""
