"""Finished runs of this suite on this machine, and whether what they hold of a variant answers the question of now."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suite.engine.answering import hash_ids, make_trial
from suite.engine.assembling import Ledger, RunHead, identity_of, join_journals
from suite.engine.belongings import own_journals, own_run_file
from suite.errors import StoreError
from suite.records import Case, Environment, Matrix, ResolvedArtifact, Trial, TrialStatus, Variant
from suite.schema import parse
from suite.store import codec
from suite.store.journal import read_journal
from suite.store.layout import RUN_FILE

MOST_RUNS = 10
"""Finished runs that are looked through, the newest first."""
INNOCENT = frozenset({"kernel", "governor"})
"""What may differ of the machine's suspects: neither computes anything."""

Declared = Mapping[str, str]
"""What makes it the same question, without the scenarios of the speed pass."""


def declare(variant: Variant, matrix: Matrix) -> Declared:
    """The identity on which answers depend."""
    identity = identity_of(variant, matrix).items()
    return {name: value for name, value in identity if not name.startswith("scenario.")}


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A finished run of this version of the suite on this machine."""

    id: str
    directory: Path
    declared: Mapping[str, Declared]
    """By variant."""
    _read: list[Ledger] = field(default_factory=list, repr=False)

    @property
    def ledger(self) -> Ledger:
        """What its journals hold, read when it is first asked for; nothing when they are damaged."""
        if not self._read:
            try:
                journals = own_journals(self.directory)
                self._read.append(join_journals([e.record for e in read_journal(file)] for file in journals))
            except StoreError:
                self._read.append(Ledger())
        return self._read[0]


class EarlierRuns:
    """The finished runs in `directories`, the newest first, as far as they are of this suite and this machine.

    Read one by one, when they are asked for. What cannot be read is passed over.
    """

    def __init__(
        self, directories: Iterable[Path] = (), environment: Environment | None = None, head: RunHead | None = None
    ) -> None:
        self.asking = head.id if head else ""
        """The id of the run that asks."""
        self._machine = _machine_of(environment) if environment else {}
        self._version = head.suite_version if head else ""
        self._left = iter(itertools.islice((path for path in directories if own_run_file(path)), MOST_RUNS))
        self._known: list[EarlierRun] = []

    def __iter__(self) -> Iterator[EarlierRun]:
        for at in itertools.count():
            while at == len(self._known):
                directory = next(self._left, None)
                if directory is None:
                    return
                self._known += self._open(directory)
            yield self._known[at]

    def of(self, declared: Declared) -> Iterator[tuple[EarlierRun, str]]:
        """The runs that held a variant declared like that, whatever it was called: each with the name."""
        for run in self:
            for name, was in run.declared.items():
                if was == declared:
                    yield run, name

    def _open(self, directory: Path) -> list[EarlierRun]:
        """The run that lies there, if it can be used."""
        file = directory / RUN_FILE
        try:
            document = codec.read_document(file, kind="run", renew="pytest --model-matrix")
            matrix = parse(Matrix, document.get("matrix"), where=str(file), error=StoreError)
            environment = parse(Environment, document.get("environment"), where=str(file), error=StoreError)
        except StoreError:
            return []
        if document.get("suite_version") != self._version or _machine_of(environment) != self._machine:
            return []
        declared = {variant.name: declare(variant, matrix) for variant in matrix.variants}
        return [EarlierRun(str(document.get("id")), directory, declared)]


def _machine_of(environment: Environment) -> Mapping[str, str]:
    """What of the machine answers may depend on: instruction sets, threads, devices and drivers, Python for the graders."""
    suspects = {name: value for name, value in environment.suspects.items() if name not in INNOCENT}
    return {**environment.identity, **suspects}


def changes_between(known: ResolvedArtifact, now: ResolvedArtifact) -> list[str]:
    """What differs in the files' hashes and in what may be to blame, by name. No files is a fact like any other."""
    old, new = (
        {f"sha256 of {file.name}": file.sha256 for file in (resolved.artifact.files if resolved.artifact else ())}
        | dict(resolved.suspects)
        for resolved in (known, now)
    )
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def is_answer_to(trial: Trial, case: Case, prompt: Sequence[int]) -> bool:
    """Whether it is what would be said to the same prompt under the budget of tokens that the case has now.

    Decoding is greedy: an answer that ended by itself, end token included, within the budget is the same under any such
    budget; one that was cut is the same under the same budget only.
    """
    said = trial.generation
    if said is None or trial.score.status is TrialStatus.ERROR:
        return False
    if trial.case_version != case.version or trial.prompt_sha256 != hash_ids(prompt):
        return False
    tokens = len(said.token_ids)
    return tokens < case.max_new_tokens if said.finish_reason == "stop" else tokens == case.max_new_tokens


def take_answer(found: Trial, variant: str, case: Case, prompt: Sequence[int], run: str) -> Trial:
    """The answer alone, without its times, which belong to another hour, and marked with where it comes from."""
    said = found.generation and dataclasses.replace(found.generation, token_times_s=(), prefill_s=0.0)
    return dataclasses.replace(
        make_trial(variant, case, prompt, found.score, said),
        accepted_logprob=found.accepted_logprob,
        accepted_sha256=found.accepted_sha256,
        cached_from=found.cached_from or run,
    )
