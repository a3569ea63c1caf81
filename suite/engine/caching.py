"""Taking from earlier runs what they hold of a variant that has not changed (``--matrix-cached``), under a control.

An answer depends on the weights, the libraries and their builds, the options, the template, the prompt, the budget of tokens
and the machine; all of them are compared, as they are now, with what a finished run wrote down of them. What no key can tell,
a sample tells that is computed anew each time. Grades are never taken from a cache, for a scorer or a target may have been
edited: a cached answer is graded once more. Times are never taken either: a cached answer has none.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from suite import backends
from suite.backends.base import ELSEWHERE
from suite.engine.answering import Prompts
from suite.engine.assembling import DROPPED, Ledger
from suite.engine.earlier import EarlierRun, EarlierRuns, changes_between, declare, is_answer_to, take_answer
from suite.engine.following import Following, key_of
from suite.engine.launching import LiveVariant
from suite.engine.plan import Plan
from suite.engine.progress import Progress
from suite.engine.sameness import is_same_forced, is_same_trace, tell_difference
from suite.engine.tracing import pick_decoded
from suite.records import Case, Forced, Generation, Note, Traced, TracedCase, Trial, Variant
from suite.scorers import grade

Answer = Callable[[LiveVariant, Case], Trial]
"""Has a loaded variant answer a case, and writes the answer down."""

FEWEST, SHARE = 3, 0.04
"""The control's sample: so many cases, or that share of them. Each compares the log-probability of every token and every
position of the trace, so that other kernels show in any one of them; and the whole of a cached run may take a tenth of a fresh
one's time."""


@dataclass(slots=True)
class Held:
    """What earlier runs hold of one variant as it is now."""

    answers: dict[str, Trial] = field(default_factory=dict)
    """By case, marked with the run that it was computed in."""
    traced: dict[str, Traced] = field(default_factory=dict)
    forced: dict[tuple[str, str], tuple[Forced, EarlierRun]] = field(default_factory=dict)
    """By case and path, with the run that it was found in."""
    sample: tuple[str, ...] = ()
    """The cases that are computed anew."""
    answers_hold: bool | None = None
    """Whether the control found them the same; None as long as it has not been made."""
    forced_hold: bool | None = None
    dropped: bool = False


class Caching:
    """Takes from earlier runs what they hold of unchanged variants. Nothing is taken before its control was made.

    The control's sample depends on the id of this run and on nothing else: it is another one in each run, can be drawn again,
    and is the same for all variants, so that each finds the rows of its peer.
    """

    def __init__(
        self, plan: Plan, ledger: Ledger, following: Following, record: Callable[[object], None], progress: Progress
    ) -> None:
        self.runs = EarlierRuns()
        """Those that may be taken from: none, unless that was asked for."""
        self._plan = plan
        self._ledger = ledger
        self._following = following
        self._record = record
        self._progress = progress
        self._held: dict[str, Held] = {}
        self._wanted: dict[str, bool] = {}
        """Unquantized variant → whether its rows must be at hand."""
        self._cases = {case.id: case for case in plan.cases}
        self._decoded = pick_decoded(case.id for case in plan.cases)

    def follow(self, live: LiveVariant, case: Case, prompt: Sequence[int], generation: Generation | None) -> None:
        """Take a loaded variant through the trace of one case, as far as no earlier run did. See `Following.follow`."""
        for record in self._records(live, case, generation):
            self._record(record)
        self._following.follow(live, case, prompt, generation)

    # -------------------------------------------------------------------------------------------- the control

    def control(self, live: LiveVariant, prompts: Prompts, answer: Answer, *, answering: bool = True) -> None:
        """Compute a sample anew before anything is taken of a loaded variant. On a difference nothing is, and what was taken
        is computed after all; that is said.

        `answering` tells whether answers are to be taken, or only what it makes of the trace; `answer` gives one.
        """
        name = live.variant.name
        sample = self._sample(live.variant, prompts, answering=answering)
        for case in sample:
            known = self._ledger.trials.get((name, case.id))
            if answering and (known is None or known.cached_from is not None):
                answer(live, case)
            else:
                self.follow(live, case, prompts[case.id], known.generation if known else None)
        if sample and (difference := self._check(name)):
            self._record(Note(text=DROPPED, data={"variant": name, "reason": difference}))
            self._progress(f"nothing of {name} is taken from earlier runs: {difference}")
            self._compute_after_all(live, prompts, answer)

    def _compute_after_all(self, live: LiveVariant, prompts: Prompts, answer: Answer) -> None:
        """Whatever was taken of the variant, also before the run was resumed; what is written down later takes its place."""
        name = live.variant.name
        taken = [forced for forced in self._ledger.forced_of(name) if forced.cached_from is not None]
        for forced in taken:
            del self._ledger.forced[name, forced.case, forced.path]
        for case in self._plan.cases:
            known = self._ledger.trials.get((name, case.id))
            if known is not None and known.cached_from is not None:
                answer(live, case)
            elif any(forced.case == case.id for forced in taken):
                self.follow(live, case, prompts[case.id], known.generation if known else None)

    def _sample(self, variant: Variant, prompts: Prompts, *, answering: bool) -> tuple[Case, ...]:
        """The cases to compute anew before anything is taken of a loaded variant; none when that was done, or in vain.

        `answering` tells whether answers are to be taken, or only what it makes of the trace.
        """
        held = self._held.get(variant.name)
        if held is None:
            held = self._held[variant.name] = self._find(variant, prompts)
        done = held.answers_hold if answering else held.forced_hold
        if held.dropped or done is not None:
            return ()
        return tuple(case for case in self._plan.cases if case.id in held.sample)

    def _check(self, variant: str) -> str:
        """Hold what was computed anew against what earlier runs hold; "" when it is the same, else the first difference.

        On a difference nothing is taken of the variant any more.
        """
        held = self._held[variant]
        if held.dropped:
            return ""
        answers, forced = list(self._compare_answers(variant, held)), list(self._compare_forced(variant, held))
        told = next((difference for difference in [*answers, *forced] if difference), "")
        held.answers_hold = _holds(answers) if held.answers_hold is None else held.answers_hold
        held.forced_hold = _holds(forced) if held.forced_hold is None else held.forced_hold
        held.dropped = bool(told)
        return told

    def _compare_answers(self, variant: str, held: Held) -> Iterator[str]:
        for case in held.sample:
            fresh = self._ledger.trials.get((variant, case))
            if fresh is not None and fresh.cached_from is None and case in held.answers:
                yield tell_difference(fresh, self._grade(held.answers[case]))
            traced = self._ledger.traced.get(case)
            if traced is not None and traced.cached_from is None and traced.variant == variant and case in held.traced:
                same = is_same_trace(traced.traced, held.traced[case].traced)
                yield "" if same else f"case {case}: the reference trace is another one"

    def _compare_forced(self, variant: str, held: Held) -> Iterator[str]:
        for (case, path), (was, _) in held.forced.items():
            fresh = self._ledger.forced.get((variant, case, path))
            if case not in held.sample or fresh is None or fresh.cached_from is not None or fresh.trace != was.trace:
                continue
            yield "" if is_same_forced(fresh, was) else f"case {case}: other logits along the {path} path"

    # -------------------------------------------------------------------------------------------- taking

    def trial(self, variant: Variant, case: Case) -> Trial | None:
        """The answer of an earlier run, graded now; None when there is none, or it may not be taken."""
        held = self._held.get(variant.name)
        if held is None or held.dropped or not held.answers_hold or case.id in held.sample:
            return None
        found = held.answers.get(case.id)
        return None if found is None else self._grade(found)

    def _records(self, live: LiveVariant, case: Case, generation: Generation | None) -> Iterator[Traced | Forced]:
        """What an earlier run holds of the trace and of the variant's way through it. Each is to be recorded at once."""
        held = self._held.get(live.variant.name)
        if held is None or held.dropped or case.id in held.sample:
            return
        traced = held.traced.get(case.id) if held.answers_hold and self._following.traced(case) is None else None
        if traced is not None and traced.key == key_of(live, self._plan) and _is_of(traced.traced, generation):
            yield traced
        if held.forced_hold:
            yield from self._take_forced(live.variant, case, held)

    def _take_forced(self, variant: Variant, case: Case, held: Held) -> Sequence[Forced]:
        """Along each path that it has to go, or none at all: what is missing is computed together."""
        traced = self._following.traced(case)
        if traced is None or self._rows_are_wanted(variant):
            return ()
        digest = self._following.hash_of(traced)
        done = self._ledger.forced.get((variant.name, case.id, "batched"))
        if done is not None and done.trace == digest:
            return ()
        taken = []
        for path in ("batched", "decode") if case.id in self._decoded else ("batched",):
            found, run = held.forced.get((case.id, path), (None, None))
            if found is None or run is None or found.trace != digest:
                return ()
            settled = self._settle_peer(variant, found, run)
            if settled is None:
                return ()
            taken.append(settled)
        return taken

    def _settle_peer(self, variant: Variant, found: Forced, run: EarlierRun) -> Forced | None:
        """As this run would have it with the peers that it has; None when it must be computed for that."""
        if found.path != "batched":
            return found
        reference = self._plan.matrix.reference
        if found.peer is None or (reference is not None and found.peer == reference.name):
            return None if self._has_peer(variant, found.case) else self._with_reference(variant, found)
        mine, then = (ledger.forced.get((found.peer, found.case, "batched")) for ledger in (self._ledger, run.ledger))
        if mine is not None:
            return found if then is not None and is_same_forced(mine, then) else None
        trace = self._plan.trace
        if trace is not None and trace.reference == found.peer:  # the rows are the trace's own
            return found
        return self._with_reference(variant, found)

    def _with_reference(self, variant: Variant, found: Forced) -> Forced:
        """With the reference for its peer where that is of the same engine: the rows are the trace's own. Else without any."""
        reference = self._plan.matrix.reference
        if reference is None or _format(reference) != _format(variant) or self._following.is_unquantized(variant):
            return dataclasses.replace(found, peer=None, peer_kld=None)
        return dataclasses.replace(found, peer=reference.name, peer_kld=found.kld)

    def _has_peer(self, variant: Variant, case: str) -> bool:
        """Whether an unquantized variant of the same engine went through the case in this run."""
        if variant.reference or self._following.is_unquantized(variant):
            return False
        for other in self._plan.matrix.variants:
            if other.reference:
                continue
            forced = self._ledger.forced.get((other.name, case, "batched"))
            fresh = forced is not None and forced.cached_from is None
            if fresh and self._following.is_unquantized(other) and _format(other) == _format(variant):
                return True
        return False

    def _rows_are_wanted(self, variant: Variant) -> bool:
        """Whether a variant that was never measured will be held against this one: then its rows must be at hand."""
        if variant.name not in self._wanted:
            self._wanted[variant.name] = self._following.is_unquantized(variant) and any(
                _format(other) == _format(variant)
                and next(self.runs.of(declare(other, self._plan.matrix)), None) is None
                for other in self._plan.matrix.variants
                if other.name != variant.name
            )
        return self._wanted[variant.name]

    def _grade(self, found: Trial) -> Trial:
        if found.generation is None:
            return found
        return dataclasses.replace(found, score=grade(self._cases[found.case], found.generation))

    # -------------------------------------------------------------------------------------------- finding

    def _find(self, variant: Variant, prompts: Prompts) -> Held:
        """Everything of it in earlier runs. Both sides of a duet are measured side by side, and never taken; nor is what a
        server says whose weights nobody can compare.
        """
        held, now = Held(), self._ledger.artifacts.get(variant.name)
        if now is None or variant.old_of is not None or self._plan.shadow_of(variant.name) is not None:
            return held
        if ELSEWHERE in now.suspects:
            return held
        for run, name in self.runs.of(declare(variant, self._plan.matrix)):
            then = run.ledger.artifacts.get(name)
            if then is None or name in run.ledger.failures or changes_between(then, now):
                continue
            self._gather(held, variant.name, run, name, prompts)
            if self._is_complete(held):
                break
        held.sample = self._draw(held)
        return held

    def _gather(self, held: Held, variant: str, run: EarlierRun, name: str, prompts: Prompts) -> None:
        """Enter what one run holds of the variant, which was called `name` there, and no newer run did."""
        for case in self._plan.cases:
            if case.id in held.answers:
                continue
            found = run.ledger.trials.get((name, case.id))
            if found is not None and is_answer_to(found, case, prompts[case.id]):
                held.answers[case.id] = take_answer(found, variant, case, prompts[case.id], run.id)
        for case_id, traced in run.ledger.traced.items():
            if traced.variant == name and case_id not in held.traced:
                origin = traced.cached_from or run.id
                held.traced[case_id] = dataclasses.replace(traced, variant=variant, cached_from=origin)
        for forced in run.ledger.forced_of(name):
            if (forced.case, forced.path) not in held.forced:
                mine = dataclasses.replace(forced, variant=variant, cached_from=forced.cached_from or run.id)
                held.forced[forced.case, forced.path] = mine, run

    def _is_complete(self, held: Held) -> bool:
        wanted = {case.id for case in self._plan.cases}
        forced = {case for case, _ in held.forced}
        return wanted <= held.answers.keys() and (not self._plan.fidelity or wanted <= forced)

    def _draw(self, held: Held) -> tuple[str, ...]:
        """The sample of this run: in it, one case that goes along the decode path, where there is one."""
        known = held.answers.keys() | {case for case, _ in held.forced}
        ranked = sorted(
            (case.id for case in self._plan.cases if case.id in known),
            key=lambda case: hashlib.sha256(f"{self.runs.asking}/{case}".encode()).hexdigest(),
        )
        drawn = ranked[: max(FEWEST, int(SHARE * len(ranked)))]
        decoded = [case for case in ranked if (case, "decode") in held.forced and case in self._decoded]
        if decoded and not set(decoded) & set(drawn):
            drawn[-1] = decoded[0]
        return tuple(drawn)


def _holds(differences: Sequence[str]) -> bool | None:
    """Whether nothing differed; None when there was nothing to compare."""
    return not any(differences) if differences else None


def _is_of(traced: TracedCase, generation: Generation | None) -> bool:
    """Whether a traced answer is the one that was given: it may be shorter, or longer by its end."""
    if generation is None:
        return False
    pairs = zip(traced.answer_ids, generation.token_ids, strict=False)
    return all(one == other for one, other in pairs)


def _format(variant: Variant) -> str:
    return backends.resolve(variant.backend).weights_format
