"""The reference trace of a run: what is missing of it is made, and each variant is taken through it while it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suite import backends
from suite.engine.answering import check_same_prompts
from suite.engine.assembling import Ledger, identity_of, stable_name
from suite.engine.distributions import Rows
from suite.engine.launching import LiveVariant
from suite.engine.plan import Plan
from suite.engine.progress import Progress
from suite.engine.tracing import TOP, Peer, force_case, hash_traced, pick_decoded, rows_of, trace_case
from suite.errors import VariantError, WorkerDied, WorkerTimeout
from suite.gate.compare_fidelity import CANNOT_BE_FORCED
from suite.gate.differences import describe_differences
from suite.metrics.legs import UNQUANTIZED_BPW
from suite.records import Case, Generation, Traced, TracedCase, Variant

NOT_IN_THE_KEY = ("scenario.", "option.n_threads")
"""Beginnings of what is declared of a reference and has no part in its answers."""


class Following:
    """Takes variants through the trace, case by case, right after they answered: what was evaluated is evaluated once."""

    def __init__(self, plan: Plan, ledger: Ledger, record: Callable[[object], None], progress: Progress) -> None:
        self._plan = plan
        self._ledger = ledger
        self._record = record
        self._progress = progress
        self._stored: Mapping[str, TracedCase] = plan.trace.cases if plan.trace else {}
        self._decoded = pick_decoded(case.id for case in plan.cases)
        self._hashes: dict[str, tuple[TracedCase, str]] = {}
        self._kept: dict[str, dict[str, Rows]] = {}
        """Unquantized variant → case → its rows."""
        self.remade = ""
        """Why the stored trace counts no more, where it does not."""
        self._refused: dict[str, dict[str, str]] = {}
        """Variant → case → why it could not be taken through it."""
        self._deaf: set[str] = set()
        """Variants whose backend cannot be forced."""

    @property
    def reference(self) -> str:
        """Name of the reference: of this run, or else of the stored trace; "" where there is neither."""
        trace = self._plan.trace
        return self._reference or (trace.reference if trace else "")

    @property
    def _reference(self) -> str | None:
        reference = self._plan.matrix.reference
        return reference.name if reference else None

    def welcome(self, live: LiveVariant) -> None:
        """Look at a variant that was just loaded: a stored trace of another reference counts no more."""
        trace = self._plan.trace
        if not self._plan.fidelity or live.variant.name != self._reference or trace is None or not self._stored:
            return
        changed = describe_differences(trace.key, key_of(live, self._plan))
        if changed:
            self._stored = {}
            self.remade = f"it is of another reference: {'; '.join(changed)}"
            self._progress(f"the reference trace is made anew, for {self.remade}")

    def check_prompts(self, live: LiveVariant, prompts: Mapping[str, tuple[int, ...]]) -> None:
        """Raise VariantInvalid when no prompt has the token ids that it has in the stored trace, which stands for a reference
        that was not asked in this run.

        Where some have, it is those cases that changed, and not the template or the tokenizer.
        """
        trace, name = self._plan.trace, live.variant.name
        if not self._plan.fidelity or trace is None or live.variant.old_of is not None:
            return
        if self._reference is not None and (name == self._reference or self._reference in self._ledger.prompts):
            return
        known = {case.id: traced.prompt_ids for case in self._plan.cases if (traced := self.traced(case)) is not None}
        if not any(prompts.get(case) == ids for case, ids in known.items()):
            check_same_prompts(prompts, known, other=f"{trace.reference} (stored trace)")

    def follow(self, live: LiveVariant, case: Case, prompt: Sequence[int], generation: Generation | None) -> None:
        """Take a loaded variant through one case; of the reference, first write down what is missing.

        Nothing happens where nothing is missing. Raises VariantInvalid, WorkerDied and WorkerTimeout.
        """
        if not self._plan.fidelity or live.variant.name in self._deaf:
            return
        try:
            traced = self.traced(case)
            if live.variant.name == self._reference and (traced is None or traced.prompt_ids != tuple(prompt)):
                traced = self._trace(live, case, prompt, generation)
            if traced is not None and traced.prompt_ids != tuple(prompt):
                self._refuse(live.variant, case, "its prompt has other token ids than in the trace")
            elif traced is not None and not self._is_done(live.variant, traced):
                self._force(live, case, traced)
        except (WorkerDied, WorkerTimeout):
            raise
        except VariantError as fault:  # the answer is longer than its context, or the like: this case cannot tell
            self._refuse(live.variant, case, str(fault))

    def _trace(
        self, live: LiveVariant, case: Case, prompt: Sequence[int], generation: Generation | None
    ) -> TracedCase | None:
        if generation is None:
            return None
        traced = trace_case(live, case, prompt, generation)
        if traced is not None:
            self._record(Traced(variant=live.variant.name, key=key_of(live, self._plan), traced=traced))
        elif generation.token_ids:
            self._deaf.add(live.variant.name)
        return traced

    def _force(self, live: LiveVariant, case: Case, traced: TracedCase) -> None:
        peer = self._peer_of(live.variant, traced)
        found = force_case(live, traced, decoded=case.id in self._decoded, peer=peer)
        if found is None:
            self._deaf.add(live.variant.name)
            return
        records, rows = found
        if self.is_unquantized(live.variant) and not rows.told:  # a server may hold the weights in another type
            self._kept.setdefault(live.variant.name, {})[case.id] = rows
        for record in records:
            self._record(record)

    def _refuse(self, variant: Variant, case: Case, why: str) -> None:
        self._refused.setdefault(variant.name, {})[case.id] = f"case {case.id} could not be forced: {why}"

    def traced(self, case: Case) -> TracedCase | None:
        """The trace of a case as it is asked now: this run's own, or else the stored one."""
        made = self._ledger.traced.get(case.id)
        found = made.traced if made is not None else self._stored.get(case.id)
        return found if found is not None and found.version == case.version else None

    def lacks(self, variant: Variant) -> tuple[Case, ...]:
        """The cases that the variant has not been taken through yet, as far as there is a trace of them."""
        if not self._plan.fidelity or variant.name in self._deaf:
            return ()
        return tuple(
            case
            for case in self._plan.cases
            if (traced := self.traced(case)) is not None and not self._is_done(variant, traced)
            if case.id not in self._refused.get(variant.name, {})
        )

    def untraced(self) -> tuple[Case, ...]:
        """The cases that only the reference can make a trace of, where the run holds it."""
        if not self._plan.fidelity or self._reference is None or self._reference in self._ledger.failures:
            return ()
        if self._reference in self._deaf or self._plan.apart:  # of several processes each would load the reference
            return ()
        return tuple(case for case in self._plan.cases if self.traced(case) is None)

    def why_missing(self, variant: Variant) -> str:
        """Why nothing was forced of a variant; "" where that is not known here."""
        if variant.name in self._deaf:
            return CANNOT_BE_FORCED
        if refused := self._refused.get(variant.name):
            return next(iter(refused.values()))
        return "" if any(self.traced(case) for case in self._plan.cases) else self._why_untraced()

    def _why_untraced(self) -> str:
        if self._plan.foreign_trace:
            return self._plan.foreign_trace
        if self._reference is None:
            return "no reference trace is stored, and the reference is not part of this run: run it with the reference once"
        if self._plan.apart:
            return "no reference trace is stored, and tests run in parallel (xdist): run once without -n"
        if self._reference in self._deaf:
            return f"there is no reference trace: the backend of '{self._reference}' cannot be forced through an answer"
        return f"there is no reference trace: nothing could be made of the answers of '{self._reference}'"

    def _is_done(self, variant: Variant, traced: TracedCase) -> bool:
        found = self._ledger.forced.get((variant.name, traced.case, "batched"))
        return found is not None and found.trace == self.hash_of(traced)

    def hash_of(self, traced: TracedCase) -> str:
        """`hash_traced`, of each case once."""
        known = self._hashes.get(traced.case)
        if known is None or known[0] is not traced:
            known = self._hashes[traced.case] = traced, hash_traced(traced)
        return known[1]

    def is_unquantized(self, variant: Variant) -> bool:
        """Whether the weights that it was resolved to are."""
        resolved = self._ledger.artifacts.get(variant.name)
        bpw = resolved.artifact.bpw if resolved and resolved.artifact else None
        return bpw is not None and bpw >= UNQUANTIZED_BPW

    def _peer_of(self, variant: Variant, traced: TracedCase) -> Peer | None:
        """The unquantized variant of the same engine, as far as it was taken through the same case in this process."""
        if variant.name == self._reference or self.is_unquantized(variant):
            return None
        format_of = backends.resolve(variant.backend).weights_format
        for other in self._plan.matrix.variants:
            rows = self._kept.get(other.name, {}).get(traced.case)
            if rows is not None and backends.resolve(other.backend).weights_format == format_of:
                return Peer(other.name, rows)
        reference, trace = self._plan.matrix.reference, self._plan.trace
        backend = reference.backend if reference else trace.key["backend"] if trace else None
        if backend is not None and backends.resolve(backend).weights_format == format_of:
            return Peer(self.reference, rows_of(traced))
        return None


def key_of(live: LiveVariant, plan: Plan) -> dict[str, str]:
    """What a trace depends on: the reference as declared, and the hashes of its weights, tokenizer and template."""
    declared = identity_of(live.variant, plan.matrix).items()
    identity = {name: value for name, value in declared if not name.startswith(NOT_IN_THE_KEY)}
    artifact = live.prepared.artifact
    hashes = {f"sha256 of {stable_name(file.name)}": file.sha256 for file in artifact.files} if artifact else {}
    tokenizer: dict[str, Any] = dict(live.prepared.tokenizer)
    return {**identity, **hashes, **tokenizer, "top": str(TOP)}
