"""A `Diff` of baselines, told once (`story`) and rendered for terminals, for pull requests and for programs."""
