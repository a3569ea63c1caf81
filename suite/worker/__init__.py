"""The process that holds one variant, and the messages between it and the parent."""
