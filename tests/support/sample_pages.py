"""Pages for a browser: of every story, of a run with something of everything, of texts that attack, of histories."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path

from support import sample_history, sample_stories
from support.sample_fidelity import damaged
from support.sample_runs import (
    VARIANTS,
    failed,
    finding,
    generation,
    matrix,
    measurement,
    measurements,
    result,
    run,
    trial,
    unresolved,
)
from support.sample_stories import STORIES

from suite.engine.completing import find_losses
from suite.records import Comparison, Finding, HistoryEntry, Measurement, Run, Scenario, SpeedSample, Verdict, Witness
from suite.reporting.history_series import Selection, build_trends
from suite.reporting.page.history import render_history
from suite.reporting.page.render import render_page

AGAIN = "run it alone:\npytest --model-matrix --matrix-resume"
RAN = "document.documentElement.dataset.ran = 1"
ATTACK = (
    f"</script><script>{RAN}</script><img src=x onerror='{RAN}'><svg onload='{RAN}'></svg></style></title></pre>"
    f"<iframe srcdoc='<script>parent.{RAN}</script>'></iframe>\"' onmouseover='{RAN}' autofocus onfocus='{RAN}' x=\""
    f"<a href='javascript:{RAN}'>{{{{ 7*7 }}}} &lt;b&gt; <!-- ]]>"
)
"""Marks the document when any of it is taken for more than text."""


def everything() -> Run:
    """Fidelity, losses, drift both ways, what cannot be told, a failed variant, flips, memory with its cache, gaps."""
    drifted = [found for found in sample_stories.slower().findings if found.verdict is not Verdict.PASS]
    lost = [found for found in sample_stories.worse().findings if found.verdict is not Verdict.PASS]
    base = damaged()
    taken = {(found.variant, found.metric, found.scope) for found in (*drifted, *lost)}
    kept = [found for found in base.findings if (found.variant, found.metric, found.scope) not in taken]
    results = [replace(one, measurements=(*one.measurements, _cache(one.variant.name))) for one in base.variants]
    reason = "its worker was killed by SIGKILL while it loaded (out of memory?)"
    results.append(failed("q2_k", Verdict.ERROR, reason, "loading\nKilled"))
    samples = tuple(sample for number, name in enumerate(VARIANTS) for sample in _samples(name, number))
    made = replace(
        base,
        matrix=matrix([*VARIANTS, "q2_k"]),
        variants=tuple(results),
        findings=(
            *kept,
            *drifted,
            *lost,
            *(_renamed(found, "q2_k") for found in unresolved("int8", Verdict.ERROR, reason, AGAIN)),
        ),
        speed_samples=samples,
    )
    return replace(made, losses=find_losses(made))


def history_of(made: Run) -> tuple[HistoryEntry, ...]:
    """Earlier nights on the machine of a run, in which a level shifted."""
    nights = sample_history.slower()
    return tuple(replace(night, machine=made.environment.machine, model=made.model) for night in nights)


def _renamed(found: Finding, name: str) -> Finding:
    return replace(found, variant=name, comparison=replace(found.comparison, variant=name))


def attacked() -> Run:
    """Every text that somebody else wrote attacks: answers, cases, reasons, names of files, notes, suspects."""
    answers = []
    for name in ("fp16", "q8_0", "q4_k_m"):
        for case in ("math/apples", f"math/{ATTACK}"):
            text = f"The answer is {ATTACK}{'' if name == 'fp16' else name}"
            ids = (1, 2, 3, 4) if name == "fp16" else (1, 2, 9, 4)
            answers.append(trial(name, case, generation=generation(text, token_ids=ids)))
    base = sample_stories.hostile()
    broken = failed("int8", Verdict.ERROR, f"failed: {ATTACK}", ATTACK)
    first = base.findings[0]
    compared: Comparison = replace(first.comparison, suspects=(ATTACK,), reason=ATTACK)
    flips = tuple(replace(flip, case=f"math/{ATTACK}", was=ATTACK, now=ATTACK) for flip in compared.flips)
    judged = finding(Verdict.REGRESSED, ATTACK, of=replace(compared, flips=flips), next_step=ATTACK)
    return run(
        [
            result("fp16"),
            broken,
            result("q8_0", suspects={ATTACK: ATTACK}),
            result("q4_k_m", identity={ATTACK: ATTACK}),
        ],
        matrix=matrix(["fp16", "int8", "q8_0", "q4_k_m"], notes=(ATTACK,)),
        findings=(judged, *unresolved("int8", Verdict.ERROR, ATTACK, ATTACK)),
        trials=tuple(answers),
        model=f"model {ATTACK}",
    )


def many_scenarios() -> Run:
    """Every scenario of the example and two with long names, on six variants; q8_0 sent its tokens eight at a time."""
    example = (resources.files("suite") / "examples" / "scenarios.toml").read_text(encoding="utf-8")
    declared = {
        **tomllib.loads(example)["scenarios"],
        **{name: {"prompt_tokens": 9, "new_tokens": 9} for name in LONG_NAMES},
    }
    scenarios = tuple(Scenario(name=name, **asked) for name, asked in declared.items())
    timed = [scenario.name for scenario in scenarios if not scenario.reloads]
    results = [result(name, measurements=_in_each(name, timed)) for name in VARIANTS]
    samples = [sample for number, name in enumerate(VARIANTS) for sample in _samples(name, number)]
    chunked = tuple(replace(s, itl_s=_in_chunks(s.itl_s)) if s.variant == "q8_0" else s for s in samples)
    return run(results, matrix=matrix(VARIANTS, scenarios=scenarios), speed_samples=chunked)


LONG_NAMES = ("summary_of_a_meeting_in_korean", "summary_of_a_meeting_in_german")


def _in_each(name: str, scenarios: Sequence[str]) -> tuple[Measurement, ...]:
    """Its usual measurements, and its speeds in each scenario, a little slower each time; one of them times no decoding."""
    usual = measurements(name)
    speeds = {m.metric: m.value for m in usual if m.metric.endswith("_tok_s")}
    return (
        *(m for m in usual if m.metric not in speeds),
        *(
            measurement(metric, scenario, value and value / (1 + 0.05 * number))
            for metric, value in speeds.items()
            for number, scenario in enumerate(scenarios)
            if (metric, scenario) != ("decode_tok_s", "prompt_8k")
        ),
    )


def _in_chunks(gaps: Sequence[float], size: int = 8) -> tuple[float, ...]:
    """The same time, but tokens come `size` at once."""
    starts = range(0, len(gaps), size)
    return tuple(gap for at in starts for gap in (sum(gaps[at : at + size]), *(0.0,) * (len(gaps[at : at + size]) - 1)))


def history() -> str:
    """The page of a history: two machines, a shift, a line that cannot be read."""
    entries = [*sample_history.slower(), *sample_history.elsewhere()]
    return render_history(build_trends(entries, Selection()), [f"h.jsonl, line 3: {ATTACK}"])


def attacked_history() -> str:
    """One in which every text attacks."""
    told = {ATTACK: ATTACK}
    entries = [
        replace(
            night, run=f"{ATTACK} {number}", model=ATTACK, machine=ATTACK, commit=ATTACK,
            verdicts=told, versions=told if number % 2 else {},
        )
        for number, night in enumerate(sample_history.slower())
    ]  # fmt: skip
    return render_history(build_trends(entries, Selection()), [ATTACK], scopes=True)


def page_of_story(name: str) -> str:
    """The page of one of the stories."""
    return render_page(STORIES[name]())


def page_of_everything() -> str:
    """The page of `everything`, with its history."""
    made = everything()
    return render_page(made, history_of(made))


PAGES: Mapping[str, Callable[[], str]] = {
    **{name: partial(page_of_story, name) for name in STORIES},
    "everything": page_of_everything,
    "scenarios": lambda: render_page(many_scenarios()),
    "attacked": lambda: render_page(attacked()),
    "history": history,
    "attacked-history": attacked_history,
}
"""Name → the text of a page."""


class Pages:
    """The files of pages by name, each rendered when it is first asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __getitem__(self, name: str) -> Path:
        file = self._directory / f"{name}.html"
        if not file.exists():
            file.write_text(PAGES[name](), encoding="utf-8")
        return file


def _cache(name: str) -> Measurement:
    size = 23_592_960.0 if name == "q4_k_m" else 47_185_920.0
    return Measurement(metric="kv_cache_bytes", scope="all", value=size, samples=(size,), launches=(0,))


def _samples(name: str, number: int) -> list[SpeedSample]:
    """Three launches of two passes each, with a stall now and then; the same each time."""
    chance = random.Random(number)
    rate = next(m.value for m in measurements(name) if m.metric == "decode_tok_s" and m.value is not None)
    made = []
    for launch in range(3):
        for round_ in range(2):
            gaps = [max(chance.gauss(1, 0.04), 0.5) / rate * (6 if chance.random() < 0.01 else 1) for _ in range(64)]
            made.append(
                SpeedSample(
                    variant=name, scenario="short", launch=launch, round=round_, prompt_tokens=128, evaluated_tokens=128,
                    new_tokens=65, prefill_s=0.1, ttft_s=0.1, itl_s=tuple(gaps),
                    witness=Witness(wall_s=1.0, cpu_s=1.0, threads=2),
                )
            )  # fmt: skip
    return made
