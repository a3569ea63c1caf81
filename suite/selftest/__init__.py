"""Does the judgement hold on this machine? Known cases, measured and replayed, through the very code that judges runs."""
