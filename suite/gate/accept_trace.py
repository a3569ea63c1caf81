"""Which reference trace an update would write. Pure, as `suite.gate.accept` is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from suite.gate.differences import describe_differences
from suite.gate.held import listed
from suite.gate.refresh import Mode
from suite.records import Trace, Traced


def accept_trace(
    traced: Sequence[Traced], stored: Trace | None, cases: Collection[str], mode: Mode, made: Mapping[str, str]
) -> Trace | str | None:
    """The trace to write; why it is refused; or None when the stored one stays as it is.

    What a run wrote down is what the stored trace lacked (a case, or the present version of one), or all of it where that is
    of another reference; so a trace is replaced only when its key changed, and otherwise only added to. `cases` are those that
    there are: others are dropped, except in mode ``new``, which takes nothing away and replaces no case.
    """
    if not traced:
        return None
    key, fresh = dict(traced[0].key), {one.traced.case: one.traced for one in traced}
    if mixed := next((found for one in traced if (found := describe_differences(key, one.key))), ()):
        return f"this run wrote down traces of two references ({listed(mixed)}); run it anew, without --matrix-resume"
    changed = describe_differences(stored.key, key) if stored else ()
    if changed and mode == "new":
        return f"the stored trace is of another reference ({listed(changed)}); replace it with --matrix-update=changed"
    kept = dict(stored.cases) if stored and not changed else {}
    present = {case: one for case, one in kept.items() if case in cases}
    taken = {**fresh, **kept} if mode == "new" else {**present, **fresh}
    if stored and not changed and taken == dict(stored.cases):
        return None
    first = next(iter(fresh.values()))
    return Trace(
        model=key["model"],
        reference=traced[0].variant,
        key=key,
        top=first.top,
        cases=taken,
        made=dict(made),
    )
