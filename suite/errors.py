"""Every exception that Quantdrift raises on purpose.

::

    QuantdriftError
    ├── UsageError             the person can mend it: a file, an option, a name       (exit status 2)
    │   ├── MatrixFileError    matrix.toml is wrong
    │   ├── CaseFileError      a case file is wrong
    │   └── StoreError         a baseline, journal or run file is wrong, too old or too new
    │       └── JournalUnwritable  the disk takes nothing of what is measured: going on is in vain
    ├── Unavailable            cannot be had here: backend not installed, hub not reachable   (NOT_MEASURED)
    ├── VariantError           this variant failed; the others go on                   (ERROR)
    │   ├── LoadError          the weights could not be loaded
    │   ├── WorkerDied         the process that held the variant is gone
    │   └── WorkerTimeout      it did not answer within its deadline
    └── VariantInvalid         measured, but of something else                         (INVALID)

Messages say what was wrong, where, and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class QuantdriftError(Exception):
    """Base of the tree: catch this to catch everything raised on purpose."""


class UsageError(QuantdriftError):
    """A file, an option or a name that the person who runs the suite can mend."""


class MatrixFileError(UsageError):
    """The matrix file cannot be read, or says something that is not known."""


class CaseFileError(UsageError):
    """A case file cannot be read, or says something that is not known."""


class StoreError(UsageError):
    """A stored file cannot be used: damaged, of another schema version, or edited by hand."""


class JournalUnwritable(StoreError):
    """The disk does not take what was measured. What it took before is safe, and measuring on would be lost too."""


class Unavailable(QuantdriftError):
    """Something that cannot be had on this machine. Not a fault of the variant: it is NOT_MEASURED."""


class VariantError(QuantdriftError):
    """One variant failed. It becomes an ERROR; the others go on."""


class LoadError(VariantError):
    """The weights of a variant could not be loaded; carries the reason that the library gave."""


class WorkerDied(VariantError):
    """The worker process ended without answering: killed, crashed, or out of memory."""


class WorkerTimeout(VariantError):
    """The worker process did not answer within its deadline and was killed."""


class VariantInvalid(QuantdriftError):
    """What was measured is not what was asked: other token ids, a cached prefill."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: ``; did you mean 'x'?`` or the list of what is known."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return "known: " + ", ".join(names) if names else "nothing is known here"
