"""What every pod holds of every GPU, from grants, reservations and observed pods."""
