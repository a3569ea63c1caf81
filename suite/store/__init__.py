"""Files: baselines that people review, a run's journal, and `run.json`. Only this package touches ``baselines/``."""
