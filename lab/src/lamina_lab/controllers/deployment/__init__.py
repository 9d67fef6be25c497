"""The Deployment controller: revisions, rolling updates and status."""
