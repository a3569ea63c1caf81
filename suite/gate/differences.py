"""What differs between two sets of facts, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from suite.records import ALL, Environment, Provenance, QualityBaseline, SpeedBaseline, VariantResult

MACHINE = "machine."
"""Prefix of the machine's identity among a variant's."""

SCENARIO = "scenario."
"""Prefix of the scenarios among a variant's identity."""

OF_FILES = "sha256 of "
"""How the names of the hashes of weights begin, among a variant's suspects."""

_ABSENT = "(absent)"
_SHA256 = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")


def describe_differences(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """``field: old → new`` for every field that is not the same on both sides, by name."""
    return tuple(
        f"{name}: {_shorten(was.get(name, _ABSENT))} → {_shorten(now.get(name, _ABSENT))}"
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    )


def describe_changes(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """The same of two sets of suspects. One that only `now` knows is no change: nobody wrote it down then.

    Hashes of files are: they have been written down from the beginning, so a file without one was not there.
    """
    return describe_differences(was, {n: value for n, value in now.items() if n in was or n.startswith(OF_FILES)})


def _shorten(value: str) -> str:
    """Twelve digits of a sha256 are enough for people; files hold all of it."""
    return _SHA256.sub(r"\1…", value)


def quality_identity(result: VariantResult) -> dict[str, str]:
    """The variant's identity without the scenarios: how speed is timed does not change an answer."""
    return {name: value for name, value in result.identity.items() if not name.startswith(SCENARIO)}


def concerning(differences: Sequence[str], scope: str) -> tuple[str, ...]:
    """The differences that matter to `scope`: a change of one scenario does not touch what is timed in another."""
    own = f"{SCENARIO}{scope}:"
    return tuple(d for d in differences if scope == ALL or not d.startswith(SCENARIO) or d.startswith(own))


def speed_identity(result: VariantResult, environment: Environment) -> dict[str, str]:
    """The variant's identity with the machine's, which is part of the question when speed is asked."""
    return {**result.identity, **_machine(environment)}


def quality_suspects(result: VariantResult, environment: Environment) -> dict[str, str]:
    """What may be to blame for a change of quality: the machine too, since kernels differ between machines."""
    return {**environment.suspects, **_machine(environment), **result.suspects}


def speed_suspects(result: VariantResult, environment: Environment) -> dict[str, str]:
    """What may be to blame for a change of speed or memory."""
    return {**environment.suspects, **result.suspects}


def describe_accepted(baseline: QualityBaseline | SpeedBaseline) -> str:
    """When and why it was accepted, and whether somebody edited the file since."""
    provenance: Provenance = baseline.provenance
    edited = "; the file was edited by hand since" if baseline.edited else ""
    return f'accepted {provenance.accepted[:10]}, "{provenance.reason}"{edited}'


def _machine(environment: Environment) -> dict[str, str]:
    return {f"{MACHINE}{name}": value for name, value in environment.identity.items()}
