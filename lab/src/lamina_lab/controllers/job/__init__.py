"""The Job controller."""
