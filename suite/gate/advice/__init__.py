"""What to use: the variants of a stored run held against what a person needs. Pure, and of nothing that was not measured."""
