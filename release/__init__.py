"""What makes the files of a release, and keeps what it is made of pinned; see docs/contributing/release.md."""
