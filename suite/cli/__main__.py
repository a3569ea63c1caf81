"""``python -m suite.cli``: the console script, for where it is not on the path."""

import sys

from suite.cli import main

sys.exit(main())
