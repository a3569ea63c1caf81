"""Where weights come from, and what they turn out to hold. Nothing here loads a model."""
