"""What a user's own test gets for each variant."""

from __future__ import annotations

from dataclasses import dataclass

from suite.engine.session import MatrixSession
from suite.errors import UsageError
from suite.records import Generation, Trial, Variant


@dataclass(frozen=True, slots=True)
class OwnTest:
    """A test that somebody wrote for the matrix."""

    id: str
    """Its node id."""
    name: str
    """Name of its trial unless it gives another one."""


class MatrixVariant:
    """One variant, ready to answer. Scores that are recorded land in the same report as the cases."""

    def __init__(self, session: MatrixSession, variant: Variant, test: OwnTest) -> None:
        self._session = session
        self._variant = variant
        self._test = test
        self._last: Generation | None = None

    @property
    def name(self) -> str:
        """Name of the variant, e.g. ``q4_k_m``."""
        return self._variant.name

    @property
    def variant(self) -> Variant:
        """The variant as declared."""
        return self._variant

    def ask(self, prompt: str, *, max_new_tokens: int = 64, system: str | None = None) -> Generation:
        """The greedy answer to `prompt`: `text`, `token_ids`, `finish_reason`, and the times of its tokens in seconds."""
        self._last = self._session.ask(self._variant, prompt, max_new_tokens=max_new_tokens, system=system)
        return self._last

    def record(self, *, score: float, domain: str = "own", name: str | None = None) -> Trial:
        """Enter a score from 0 to 1 as a trial of ``domain/name`` (name: the test's own, with its class).

        Raises UsageError for a score outside 0..1, and when another test recorded ``domain/name`` in this run.
        """
        if not 0.0 <= score <= 1.0:
            raise UsageError(f"{self._test.id}: a score lies between 0 and 1, not {score!r}")
        case = name or self._test.name
        self._session.own.claim(self._variant.name, f"{domain}/{case}", self._test.id)
        return self._session.own.record(self._variant.name, case, score=score, domain=domain, generation=self._last)
