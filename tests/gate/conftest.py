"""Results and baselines made by hand, for gates that judge them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from suite.gate.answers import answer_of
from suite.metrics import measure
from suite.metrics.catalog import SPECS
from suite.records import (
    BaselineMetric,
    Deadlines,
    Environment,
    Generation,
    Launch,
    Matrix,
    Measurement,
    Noise,
    NoiseFloor,
    Protocol,
    Provenance,
    QualityBaseline,
    Run,
    Scenario,
    Score,
    SpeedBaseline,
    SpeedSample,
    Trial,
    TrialStatus,
    Variant,
    VariantFailure,
    VariantResult,
    Witness,
    Yardstick,
)
from suite.stats.robust import median

PROVENANCE = Provenance(accepted="2026-11-20T10:00:00+00:00", reason="llama-cpp-python 0.3.35", run="r0", launches=3)
MIB = 2**20
QUIET = Witness(wall_s=1.0, cpu_s=2.0, threads=2, pressure=0.01, steal=0.0, involuntary_switches=20)


class Made:
    """Makers of records with sensible contents; every argument changes one thing."""

    environment = Environment(
        machine="epyc-2c", identity={"cpu": "EPYC", "cores": "2"}, suspects={"kernel": "6.1"}, readings={}
    )
    provenance = PROVENANCE

    @staticmethod
    def trial(
        case: str,
        outcome: float | TrialStatus = 1.0,
        *,
        tokens: Sequence[int] | None = None,
        version: int = 1,
        family: str | None = None,
    ) -> Trial:
        """One answer: a credit, or a status without one. Tokens follow from the outcome unless given."""
        scored = not isinstance(outcome, TrialStatus)
        value = outcome if scored else None
        ids = tuple(tokens if tokens is not None else (ord(c) for c in str(outcome)))
        generation = Generation(
            token_ids=ids, text="x", finish_reason="stop", prompt_tokens=4, evaluated_tokens=4, prefill_s=0.1,
            token_times_s=tuple(0.1 * (i + 1) for i in range(len(ids))),
        )  # fmt: skip
        return Trial(
            variant="q4",
            case=case,
            case_version=version,
            domain=case.split("/", maxsplit=1)[0],
            family=family,
            scorer="number@1",
            prompt_sha256="ab",
            score=Score(
                status=TrialStatus.SCORED if scored else outcome,  # type: ignore[arg-type]
                value=value,  # type: ignore[arg-type]
                correct=None if value is None else value == 1.0,
            ),
            generation=None if outcome is TrialStatus.ERROR else generation,
        )

    @classmethod
    def trials(cls, *outcomes: float | TrialStatus, domain: str = "math") -> tuple[Trial, ...]:
        """Answers of one domain, cases numbered."""
        return tuple(cls.trial(f"{domain}/{number:02}", outcome) for number, outcome in enumerate(outcomes))

    @staticmethod
    def speed(metric: str, launches: Sequence[float], scope: str = "short", **changes: Any) -> Measurement:
        """A measurement with one sample a launch."""
        value = max(launches) if metric.endswith("_bytes") else median(launches)
        made = Measurement(
            metric=metric, scope=scope, value=value, samples=tuple(launches), launches=tuple(range(len(launches)))
        )
        return dataclasses.replace(made, **changes)

    @staticmethod
    def slices(*launches: Sequence[float], **changes: Any) -> tuple[SpeedSample, ...]:
        """Timed slices: for each launch the gap between tokens in each of its rounds."""
        return tuple(
            dataclasses.replace(
                SpeedSample(
                    variant="q4", scenario="short", launch=launch, round=number, prompt_tokens=128, evaluated_tokens=128,
                    new_tokens=13, prefill_s=10 * gap, ttft_s=11 * gap, itl_s=(gap,) * 12, witness=QUIET,
                ),
                **changes,
            )
            for launch, gaps in enumerate(launches)
            for number, gap in enumerate(gaps)
        )  # fmt: skip

    @staticmethod
    def launch(index: int, **changes: Any) -> Launch:
        """One load, on a machine as fast as ever."""
        made = Launch(
            variant="q4", index=index, load_s=1.0, cold_ttft_s=0.5, cold_prompt_tokens=128, peak_rss_bytes=100 * MIB,
            uss_bytes=90 * MIB, peak_device_bytes=None, kv_cache_bytes=MIB, kv_cache_reported_bytes=None, facts={},
            yardstick=Yardstick(hash_bytes_s=1e9, copy_bytes_s=1e10),
        )  # fmt: skip
        return dataclasses.replace(made, **changes)

    @classmethod
    def timed(cls, samples: Sequence[SpeedSample], launches: Sequence[Launch] = (), **changes: Any) -> VariantResult:
        """A variant's results, speed measured from slices."""
        return cls.result(*measure("q4", (), samples, launches), launches=tuple(launches), **changes)

    @staticmethod
    def noise(metric: str, **changes: Any) -> Noise:
        """What calibration found of one metric: sessions that differ by 1 %, launches by 0.5 %."""
        floor = NoiseFloor(slice_sd=0.01, launch_sd=0.005, launch_df=20, session_sd=0.01, session_df=20)
        return Noise(
            model="smol", machine="epyc-2c", identity={"cpu": "EPYC", "cores": "2"},
            measured="2026-11-20T10:00:00+00:00", sessions=21, launches=5,
            floors={metric: dataclasses.replace(floor, **changes)},
        )  # fmt: skip

    @staticmethod
    def result(
        *measurements: Measurement,
        trials: Sequence[Trial] = (),
        failure: VariantFailure | None = None,
        **changes: Any,
    ) -> VariantResult:
        """A variant's results, quality measured from the trials."""
        made = VariantResult(
            variant=Variant(name="q4", model="smol", backend="fake", source="x"),
            artifact=None,
            measurements=(*measurements, *measure("q4", trials, (), ())),
            launches=(),
            failure=failure,
            identity={"prompt_format": "chat"},
            suspects={"llama-cpp-python": "0.3.36"},
        )
        return dataclasses.replace(made, **changes)

    @classmethod
    def speed_baseline(cls, metrics: Mapping[str, Sequence[float]], **changes: Any) -> SpeedBaseline:
        """Accepted launches by ``metric/scope``, on the same machine, with an older library."""
        made = SpeedBaseline(
            model="smol",
            variant="q4",
            machine="epyc-2c",
            identity={"prompt_format": "chat", "machine.cpu": "EPYC", "machine.cores": "2"},
            suspects={"kernel": "6.1", "llama-cpp-python": "0.3.35"},
            provenance=PROVENANCE,
            metrics={
                key: BaselineMetric(
                    value=max(launches) if "_bytes" in key else median(launches),
                    unit=SPECS[key.split("/")[0]].unit,
                    launches=tuple(launches),
                )
                for key, launches in metrics.items()
            },
        )
        return dataclasses.replace(made, **changes)

    @staticmethod
    def quality_baseline(trials: Sequence[Trial], **changes: Any) -> QualityBaseline:
        """Accepted answers."""
        made = QualityBaseline(
            model="smol",
            variant="q4",
            identity={"prompt_format": "chat"},
            suspects={"kernel": "6.1", "llama-cpp-python": "0.3.35", "machine.cpu": "EPYC", "machine.cores": "2"},
            provenance=PROVENANCE,
            metrics={
                f"{m.metric}/{m.scope}": BaselineMetric(value=m.value, unit=SPECS[m.metric].unit)
                for m in measure("q4", trials, (), ())
                if m.value is not None
            },
            cases={trial.case: answer_of(trial) for trial in trials},
        )
        return dataclasses.replace(made, **changes)

    @classmethod
    def run(cls, result: VariantResult, trials: Sequence[Trial]) -> Run:
        """A run of one variant, scenario ``short``."""
        matrix = Matrix(
            model="smol",
            variants=(result.variant,),
            scenarios=(Scenario(name="short", prompt_tokens=128, new_tokens=32),),
            protocol=Protocol(),
            policy={},
            deadlines=Deadlines(),
            file="matrix.toml",
        )
        return Run(
            id="r1",
            created="2026-11-29T18:00:00+00:00",
            suite_version="0",
            model="smol",
            matrix=matrix,
            environment=cls.environment,
            variants=(result,),
            trials=tuple(trials),
            speed_samples=(),
            settings={},
        )


@pytest.fixture(scope="session")
def made() -> type[Made]:
    """The makers."""
    return Made
