"""A plan for people: at most 100 columns of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from suite.planning.records import CasesNeeded, Detection, LaunchesNeeded, Outlook, QualityOutlook, SpeedOutlook

WIDTH = 100


def render_plan(outlook: Outlook) -> list[str]:
    """The lines of a plan."""
    lines = [f"Plan for {outlook.model} on {outlook.machine}: nothing has been measured.", ""]
    lines += _speed(outlook)
    lines += ["", *_quality(outlook)]
    if outlook.launches_needed or outlook.cases_needed:
        lines += ["", "Wanted tolerances"]
        lines += [_needed_launches(needed) for needed in outlook.launches_needed]
        lines += [_needed_cases(needed) for needed in outlook.cases_needed]
    return lines


def _speed(outlook: Outlook) -> Iterator[str]:
    yield "Speed"
    yield from _wrapped(
        f"{outlook.speed_gates} gates of {outlook.variants} variants share {100 * outlook.speed_alpha:.1f} % for false "
        f"alarms. {outlook.launches} launches of each variant, up to {outlook.max_launches} while one of its gates is "
        f"undecided. Noise: {outlook.noise}."
    )
    yield from _table(
        [
            "metric",
            "tier",
            "tolerance",
            "varies by",
            f"found in {outlook.launches}",
            f"in {outlook.max_launches}",
            "passes",
        ],
        [_speed_row(speed, outlook.speed) for speed in outlook.speed],
    )
    yield from _wrapped(
        "varies by: standard deviation between launches + between sessions. found: the smallest slowdown that is called "
        "REGRESSED with 80 / 95 % power; the last one is the largest that may be missed. passes: the chance that an "
        "unchanged variant is called PASS with the first launches (else it gets more)."
    )
    cost = _cost(outlook)
    if cost:
        yield from _wrapped(cost)


def _cost(outlook: Outlook) -> str:
    if outlook.launch_s is None:
        return "How long a launch takes is not known yet: run the matrix once, or quantdrift calibrate."
    first, most = (count * outlook.launch_s / 60 for count in (outlook.launches, outlook.max_launches))
    return (
        f"One launch of every variant takes about {outlook.launch_s:.0f} s: {_minutes(first)} for the first launches, "
        f"{_minutes(most)} at most; twice that side by side with an old version."
    )


def _speed_row(speed: SpeedOutlook, everything: Sequence[SpeedOutlook]) -> list[str]:
    sessions = f" + {_percent(speed.session_sd)}" if speed.session_sd else ""
    return [
        _named(speed, everything),
        speed.tier.value,
        _percent(speed.tolerance),
        _percent(speed.launch_sd) + sessions + ("" if speed.measured else " (assumed)"),
        _found(speed.first),
        _found(speed.most),
        f"{100 * speed.first.passes:.0f} %",
    ]


def _named(speed: SpeedOutlook, everything: Sequence[SpeedOutlook]) -> str:
    """The metric; with its scopes where others have another tolerance."""
    alone = all(other.scopes == speed.scopes for other in everything if other.metric == speed.metric)
    return speed.metric if alone else f"{speed.metric}/{','.join(speed.scopes)}"


def _found(detection: Detection) -> str:
    if detection.mde_95 is None and detection.mde_80 is None:
        return "nothing"
    return f"{_number(detection.mde_80)} / {_percent(detection.mde_95)}"


def _quality(outlook: Outlook) -> Iterator[str]:
    yield "Answers (score, each variant against its own accepted answers)"
    yield from _table(
        ["domain", "cases", "tolerance", "called from", "found", "found, 2 % gained", "zero flips certify"],
        [_quality_row(quality) for quality in outlook.quality],
    )
    yield from _wrapped(
        "cases: independent ones, a family of templates counts once. called from: the smallest net loss that is called "
        "REGRESSED when only one variant's answers changed; in brackets, when those of all did. found: the share of "
        "answers that must really be lost to be found with 80 / 95 % power, when none is gained and when 2 % are. "
        "zero flips certify: the loss that is still possible when nothing flipped."
    )


def _quality_row(quality: QualityOutlook) -> list[str]:
    called = "nothing" if quality.called is None else f"{quality.called} ({quality.called_crowded or 'none'})"
    return [
        quality.scope,
        str(quality.cases),
        _percent(quality.tolerance),
        called,
        f"{_number(quality.loss_80)} / {_percent(quality.loss_95)}",
        f"{_number(quality.loss_80_gain)} / {_percent(quality.loss_95_gain)}",
        _percent(quality.certified),
    ]


def _needed_launches(needed: LaunchesNeeded) -> str:
    head = f"  {needed.metric} within {_percent(needed.tolerance)}, {needed.tier.value}: "
    if needed.launches is None:
        return head + needed.limit
    time = "" if needed.minutes is None else f", about {_minutes(needed.minutes)}"
    return f"{head}{needed.launches} launches{time} (passes unchanged, finds twice that)"


def _needed_cases(needed: CasesNeeded) -> str:
    find = f"{needed.find} find" if needed.find else "no number of cases finds"
    return (
        f"  score within {_percent(needed.tolerance)}: {needed.certify} cases certify it when nothing flips; {find} a "
        f"loss of {_percent(min(2 * needed.tolerance, 1.0))}"
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = [
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{_number(share)} %"


def _number(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.3g}"


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes >= 1.5 else f"{60 * minutes:.0f} s"
