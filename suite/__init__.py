"""Quantdrift: a quality-vs-speed regression suite for quantized local language models."""

__version__ = "0.1.0"
