"""Tests of the plugin run pytest inside pytest. The plugin itself is installed, and found by its entry point."""

import numpy as np  # pytester forgets modules after each test, and numpy cannot be loaded twice in a process

__all__ = ["np"]

pytest_plugins = ["pytester"]
