"""One `Report` model, and the renderers that show it: terminal, failure screen, Markdown, JUnit properties.

Renderers decide nothing. What holds and what does not is in the findings; how findings are ordered, folded and summed
up is in `suite.reporting.model`, once, so that no two outputs can disagree.
"""
