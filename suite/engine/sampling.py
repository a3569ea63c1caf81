"""Whether a timed sample may be used: it timed what was asked, and the machine was ours meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

from suite.records import Protocol, SampleStatus, Scenario, SpeedSample, Witness

BUSY_SHARE = 0.9
"""Where the system tells no pressure: a CPU backend that got the CPU for less than this share of the wall time waited."""

FULL_SHARE = 0.97
"""A worker that had this share of all CPUs that it may use had them to itself."""


def device_of(facts: Mapping[str, str]) -> str:
    """What a backend says that it runs on. llama.cpp names no device, only that its build can give work to a GPU."""
    return facts.get("device", "gpu" if facts.get("gpu_offload") == "True" else "cpu")


def judge_sample(
    sample: SpeedSample, scenario: Scenario, protocol: Protocol, *, device: str = "cpu", cpus: int = 0
) -> tuple[SampleStatus, str | None]:
    """Whether a sample may be used, and if not, why. `device` is what the backend says that it runs on.

    `cpus` is the number of CPUs that the worker may use; 0 where nobody knows.
    """
    expected = sample.prompt_tokens - sample.kept_tokens
    if sample.evaluated_tokens != expected and not sample.turns:  # of a conversation, that is what is measured
        kept = f", beside {sample.kept_tokens} that were kept" if sample.kept_tokens else ""
        return SampleStatus.REJECTED, f"{sample.evaluated_tokens} of {expected} prompt tokens were evaluated{kept}"
    if sample.new_tokens != scenario.new_tokens:
        return SampleStatus.REJECTED, f"{sample.new_tokens} of {scenario.new_tokens} tokens were generated"
    pressure = sample.witness.pressure
    if pressure is not None and pressure > protocol.max_pressure and not _had_all(sample.witness, cpus):
        return (
            SampleStatus.CONTENDED,
            f"another process waited for a CPU {pressure:.0%} of the time (limit {protocol.max_pressure:.0%})",
        )
    steal = sample.witness.steal
    if steal is not None and steal > protocol.max_steal:
        return (
            SampleStatus.CONTENDED,
            f"the hypervisor took {steal:.0%} of the CPU time for others (limit {protocol.max_steal:.0%})",
        )
    if pressure is None and device == "cpu":
        return _judge_cpu_time(sample.witness)
    return SampleStatus.CLEAN, None


def _had_all(witness: Witness, cpus: int) -> bool:
    """Whether the worker itself filled the CPUs that it may use: nobody else took any, and who waited was its own thread."""
    return cpus > 0 and witness.cpu_s >= FULL_SHARE * witness.wall_s * cpus


def _judge_cpu_time(witness: Witness) -> tuple[SampleStatus, str | None]:
    """The witness where the system tells no pressure (not Linux, or PSI is off): the worker's own CPU time.

    One thread at least computes all the time. More cannot be asked: libraries run parts of a step on one thread only.
    """
    is_simulated = witness.involuntary_switches is None
    if is_simulated or witness.cpu_s >= BUSY_SHARE * witness.wall_s:
        return SampleStatus.CLEAN, None
    return (
        SampleStatus.CONTENDED,
        f"the worker had a CPU for {witness.cpu_s / witness.wall_s:.0%} of the time only (limit {BUSY_SHARE:.0%}; "
        "told by its CPU time, for this system tells no CPU pressure)",
    )
