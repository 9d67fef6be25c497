"""Resources: which ones the API serves, their fields, defaults and validation."""
