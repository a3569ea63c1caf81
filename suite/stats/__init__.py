"""Pure statistics, numbers in and out: `robust` medians, `intervals` of log ratios, `binomial` flips, `signflip` p."""
