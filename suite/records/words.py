"""The words that records are written in: verdicts, states, directions."""

from __future__ import annotations

from enum import StrEnum

SCHEMA_VERSION = 1
"""Version of everything written by `suite.store`. Raise it with a migration, and keep a file of each version in tests."""


ALL = "all"
"""The scope of everything together: all domains, or no scenario in particular."""


class Verdict(StrEnum):
    """What a gate says. Only PASS and IMPROVED are good news, and IMPROVED asks for a new baseline."""

    ERROR = "ERROR"
    INVALID = "INVALID"
    REGRESSED = "REGRESSED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    UNBASELINED = "UNBASELINED"
    NOT_MEASURED = "NOT_MEASURED"
    IMPROVED = "IMPROVED"
    PASS = "PASS"


VERDICTS_WORST_FIRST: tuple[Verdict, ...] = tuple(Verdict)
"""The order in which verdicts outrank one another when several are summed up in one word."""


class TrialStatus(StrEnum):
    """How a trial ended. Only SCORED carries a score; the others are counted as what they are."""

    SCORED = "scored"
    TRUNCATED = "truncated"
    """The token budget ran out before an anchored answer appeared."""
    EMPTY = "empty"
    """Nothing but white space (after thoughts were stripped)."""
    UNPARSABLE = "unparsable"
    """Text, but no rule of the scorer found an answer in it."""
    ERROR = "error"
    """The worker failed while it answered."""


class SampleStatus(StrEnum):
    """Whether a timed sample may be used."""

    CLEAN = "clean"
    CONTENDED = "contended"
    """Its witnesses say that the machine was not ours while it was taken."""
    REJECTED = "rejected"
    """Evaluated tokens differ from prompt tokens, or fewer tokens came than were asked for."""
    UNSUITED = "unsuited"
    """Nothing was timed: the variant's context is too small for the scenario, or its backend cannot do it."""


class Aspect(StrEnum):
    """What a metric is about; speed and quality have different comparability keys."""

    QUALITY = "quality"
    SPEED = "speed"
    MEMORY = "memory"


class Direction(StrEnum):
    """Which way is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Tier(StrEnum):
    """What a speed verdict was compared with."""

    STORED = "stored"
    """The accepted baseline of the same identity."""
    FOREIGN = "foreign"
    """A baseline from another machine: never a failure."""
    DUET = "duet"
    """Measured side by side in this run."""
    NONE = "none"


class Gate(StrEnum):
    """What a REGRESSED finding of this metric does: fail, warn, or only inform."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"
