"""Advice on which variant to use, for a terminal, as Markdown and as JSON."""
