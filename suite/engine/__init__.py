"""What to run, in which order, and how it is put together."""
