"""Measurements and baselines → comparisons (numbers) → findings (verdicts). Pure throughout."""
