"""Tests of the plugin run pytest inside pytest. The plugin itself is installed, and found by its entry point."""

pytest_plugins = ["pytester"]
