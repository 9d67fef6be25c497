"""What all controllers share: the sync loop, ownership, pod templates, and carrying out actions."""
