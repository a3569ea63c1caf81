"""Live duets: the kernel beside itself through the real worker, the real speed pass and the real gate."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from suite import backends, clock
from suite.engine.environment import capture_environment
from suite.engine.launching import Launcher, LiveVariant
from suite.engine.preparing import Preparer
from suite.engine.progress import silent
from suite.engine.timing import SpeedPass, SpeedSink
from suite.errors import QuantdriftError
from suite.gate.compare import compare
from suite.gate.duet import OldSide
from suite.gate.family import Decision, decide_all
from suite.gate.policy import DEFAULT_POLICY
from suite.metrics import measure
from suite.records import (
    Baselines,
    Comparison,
    Deadlines,
    Environment,
    Launch,
    Matrix,
    Protocol,
    Scenario,
    SpeedSample,
    Tolerance,
    Variant,
    VariantResult,
    Verdict,
)
from suite.schema import dump, parse
from suite.selftest.neighbour import neighbours

NOW, OLD = "a", "a@old"
SCENARIO = Scenario(name="duet", prompt_tokens=16, new_tokens=12)
"""Slices of 0.05 s of the kernel of 64 MiB. What a machine gives changes within fractions of a second, and adjacent slices
share it: many short pairs leave less spread than a few long ones of the same time."""
PROTOCOL = Protocol(launches=5, max_launches=10, rounds=24, warmup=1, max_warmup=2, retries=1, resident="all")
ASKED: Mapping[str, Tolerance] = {
    metric: DEFAULT_POLICY[metric] for metric in ("itl_s", "decode_tok_s", "prefill_tok_s")
}
"""What a live duet is asked: the gates that block by default, with their tolerances side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of live run: what the new side does differently, and what must be said of which metric."""

    about: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the kernel, for the new side alone."""
    burners: int = 0
    """Neighbours that burn a core meanwhile."""
    found: Mapping[str, Verdict] = field(default_factory=dict)
    """The verdict that counts as success, by metric; empty: nothing may be REGRESSED."""


KINDS: Mapping[str, Kind] = {
    "aa": Kind(about="the same work"),
    "busy": Kind(about="the same work, a neighbour burns a core", burners=1),
    "slower5": Kind(about="5 % more work", options={"work": 1.05005}, found={"itl_s": Verdict.REGRESSED}),
    "slower10": Kind(about="10 % more work", options={"work": 1.1001}, found={"itl_s": Verdict.REGRESSED}),
    "faster5": Kind(about="5 % less work", options={"work": 0.95}, found={"itl_s": Verdict.IMPROVED}),
    "stalls": Kind(
        about="every 8th token stalls", options={"stall_every": 8}, found={"decode_tok_s": Verdict.REGRESSED}
    ),
}
"""By the name that it has on the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What one gate of a live run said. Drift and interval as shares, positive is worse."""

    verdict: Verdict
    drift: float | None
    interval: tuple[float, float] | None
    """95 %."""
    p_value: float | None = None
    p_needed: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """One line of a results file."""

    kind: str
    at: str
    """ISO 8601, UTC."""
    machine: str
    launches: int
    looks: int
    cost_s: float
    checks: Mapping[str, Checked]
    flags: tuple[str, ...] = ()
    slices: int = 0
    """Timed slices of both sides, those that were taken again included."""
    unclean: int = 0
    """Those that a neighbour took."""

    @property
    def crowded(self) -> bool:
        """Whether most slices met a neighbour: such a run says nothing about power, only that it cried wolf or not."""
        return self.unclean > self.slices / 2

    @property
    def false_alarm(self) -> bool:
        """Whether anything is REGRESSED."""
        return any(checked.verdict is Verdict.REGRESSED for checked in self.checks.values())

    @property
    def success(self) -> bool:
        """Whether it said what its kind asks for."""
        wanted = KINDS[self.kind].found
        if not wanted:
            return not self.false_alarm
        return all(self.checks[metric].verdict is verdict for metric, verdict in wanted.items())


class Duet:
    """One live run in progress: samples of both sides, and how often they were judged."""

    def __init__(self, matrix: Matrix, environment: Environment, logs: Path, *, cache: Path | None = None) -> None:
        """`matrix` holds two variants, the second one `old_of` the first; `cache` is where weights are made and kept."""
        self._environment = environment
        self._samples: list[SpeedSample] = []
        self._launches: list[Launch] = []
        self._looks = 0
        self._matrix = matrix
        launcher = Launcher(
            preparer=Preparer(base=logs, cache=cache or logs, deadlines=Deadlines(), progress=silent),
            deadlines=Deadlines(),
            logs=logs,
            progress=silent,
        )
        sink = SpeedSink(
            sample=self._samples.append, launch=self._launches.append, failure=_raise_failure, opened=_welcome
        )
        self._speed = SpeedPass(self._matrix, launcher, sink)

    def look(self, upto: int) -> tuple[list[Comparison], list[Decision]]:
        """Measure until there are `upto` launches, and judge. Raises the failure of a worker."""
        done = {name: sum(launch.variant == name for launch in self._launches) for name in (NOW, OLD)}
        self._speed.run(self._matrix.variants, done, upto)
        self._looks += 1
        now, old = (self._result(variant) for variant in self._matrix.variants)
        side = OldSide(result=old, samples=tuple(s for s in self._samples if s.variant == OLD))
        found = compare(now, (), Baselines(), self._environment, samples=self._samples, old=side, looks=self._looks)
        asked = [comparison for comparison in found if comparison.metric in ASKED]
        return asked, decide_all([(comparison, ASKED[comparison.metric]) for comparison in asked])

    def _result(self, variant: Variant) -> VariantResult:
        return VariantResult(
            variant=variant,
            artifact=None,
            measurements=measure(variant.name, (), self._samples, self._launches),
            launches=tuple(launch for launch in self._launches if launch.variant == variant.name),
            failure=None,
            identity={},
            suspects={},
        )

    @property
    def launches(self) -> int:
        """Finished launches of the new side."""
        return sum(launch.variant == NOW for launch in self._launches)

    @property
    def looks(self) -> int:
        """How often the data were judged."""
        return self._looks

    @property
    def slices(self) -> int:
        """Timed slices of both sides."""
        return len(self._samples)

    @property
    def unclean(self) -> int:
        """Slices that cannot be used."""
        return sum(sample.status != "clean" for sample in self._samples)


def run_live(kind: str, environment: Environment | None = None) -> LiveRun:
    """One live run: five launches, and up to ten while a gate is undecided.

    Raises QuantdriftError when a worker fails: the kernel needs 64 MiB for each of two processes.
    """
    burners = KINDS[kind].burners
    company: AbstractContextManager[None] = neighbours(burners, bursty=False) if burners else nullcontext()
    with company:
        return run_duet(kind, kernel_matrix(kind), environment or capture_environment())


def run_duet(kind: str, matrix: Matrix, environment: Environment, *, cache: Path | None = None) -> LiveRun:
    """One duet of the two variants in `matrix`, judged as a run of the suite judges it. Raises the failure of a worker."""
    begin, at = clock.monotonic(), clock.now().isoformat()
    first, most = matrix.protocol.launches, matrix.protocol.max_launches
    with tempfile.TemporaryDirectory(prefix="quantdrift-selftest-") as logs:
        duet = Duet(matrix, environment, Path(logs), cache=cache)
        comparisons, decisions = duet.look(first)
        while duet.launches < most and any(d.verdict is Verdict.INCONCLUSIVE for d in decisions):
            comparisons, decisions = duet.look(most)
    return LiveRun(
        kind=kind,
        at=at,
        machine=environment.machine,
        launches=duet.launches,
        looks=duet.looks,
        cost_s=round(clock.monotonic() - begin, 1),
        checks={c.metric: _checked(c, d) for c, d in zip(comparisons, decisions, strict=True)},
        flags=tuple(dict.fromkeys(flag for c in comparisons for flag in c.flags)),
        slices=duet.slices,
        unclean=duet.unclean,
    )


def write_line(run: LiveRun) -> str:
    """The run as one line of JSON."""
    return json.dumps(dump(run), separators=(",", ":"))


def read_runs(file: Path) -> list[LiveRun]:
    """The runs of a results file, none if it is not there. A line that was cut off is left out."""
    if not file.is_file():
        return []
    runs = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        runs.append(parse(LiveRun, data, where=str(file), error=QuantdriftError))
    return runs


def kernel_matrix(kind: str) -> Matrix:
    """The kernel beside itself, the new side with what is different about it."""
    variants = [
        Variant(
            name=name,
            model="kernel",
            backend="kernel",
            source="none",
            options={"n_threads": 1, **options},
            prompt_format="raw",
            old_of=old_of,
        )
        for name, options, old_of in ((NOW, KINDS[kind].options, None), (OLD, {}, NOW))
    ]
    return Matrix(
        model="kernel",
        variants=tuple(_fill(variant) for variant in variants),
        scenarios=(SCENARIO,),
        protocol=PROTOCOL,
        policy=ASKED,
        deadlines=Deadlines(),
        file="selftest",
    )


def _fill(variant: Variant) -> Variant:
    """With every option at its default, as a matrix file's variants are."""
    usual = asdict(backends.options_of(variant.backend)())
    return replace(variant, options={**usual, **variant.options})


def _checked(comparison: Comparison, decision: Decision) -> Checked:
    low_high = comparison.interval
    return Checked(
        verdict=decision.verdict,
        drift=None if comparison.drift is None else round(comparison.drift, 5),
        interval=None if low_high is None else (round(low_high[0], 5), round(low_high[1], 5)),
        p_value=decision.p_value,
        p_needed=decision.p_needed,
    )


def _raise_failure(_variant: Variant, fault: QuantdriftError) -> None:
    raise fault


def _welcome(_live: LiveVariant) -> None:
    """Nothing is to be done for a launch that succeeded."""
