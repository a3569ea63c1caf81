"""What all tests share."""

import numpy as np  # pytester forgets modules after each test, and numpy cannot be loaded twice

__all__ = ["np"]
