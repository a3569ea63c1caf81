"""The table of a concurrency sweep, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from suite.metrics.load import LEAST_GAIN, Budget, Knee, Level, Sweep, Target
from suite.reporting.hostile import one_line, plain
from suite.reporting.wording import counted

FEW = 100
"""Requests below which a 99th percentile is no more than the largest."""
HEAD = " clients   req/s   tok/s   TTFT p50    p95    p99   ITL p50    p95    p99"


def render_load(sweep: Sweep) -> list[str]:
    """Title, one line a level, errors below it, the knee and the KV budget, and what the server said of its memory."""
    target = sweep.target
    title = (
        f" {plain(sweep.server)} · {sweep.prompt_tokens} → {sweep.new_tokens} tokens · "
        f"{sweep.requests_a_client} requests a client"
    )
    lines = [title, "", HEAD + ("   good/s" if target.asks else "")]
    for level in sweep.levels:
        lines.append(_line(level))
        lines += [f"   {count} of {level.requests} failed: {plain(reason)}" for reason, count in level.errors.items()]
    lines += ["", " times in ms: TTFT over requests, ITL over all gaps of a level"]
    if any(level.requests < FEW for level in sweep.levels):
        lines.append(
            f" of fewer than {FEW} requests the p99 of TTFT is the largest: --requests takes more of each client"
        )
    if target.asks:
        lines.append(f" good/s: requests a second that met the target ({_describe(target)})")
    lines += [_tell_knee(sweep.knee), *_tell_budget(sweep.budget, sweep.knee)]
    if sweep.stopped:
        lines.append(f" {one_line(sweep.stopped)}")
    lines += [note for level in sweep.levels if (note := _tell_memory(level))]
    return lines


def _line(level: Level) -> str:
    times = "".join(
        _milliseconds(table, 11 if first else 10) for table, first in ((level.ttft_s, True), (level.itl_s, False))
    )
    good = "" if level.goodput_s is None else f"{level.goodput_s:9.2f}"
    return f" {level.concurrency:7}{level.request_s:8.2f}{level.new_tok_s:8.1f}{times}{good}"


def _milliseconds(table: Mapping[str, float], first: int) -> str:
    if not table:
        return "–".rjust(first) + "–".rjust(7) * 2
    return "".join(f"{table[name] * 1000:{first if name == 'p50' else 7}.1f}" for name in ("p50", "p95", "p99"))


def _describe(target: Target) -> str:
    asked = {"TTFT": target.ttft_s, "time per token": target.tpot_s}
    return ", ".join(f"{name} ≤ {seconds * 1000:g} ms" for name, seconds in asked.items() if seconds is not None)


def _tell_knee(knee: Knee) -> str:
    if knee.concurrency is None:
        return " knee: cannot tell, no level was answered"
    gain = "" if knee.gain is None else f" ({knee.gain:+.0%})"
    if knee.reached:
        clients = counted(knee.concurrency, "client")
        return f" knee: {clients}; the next doubling gains less than {LEAST_GAIN:.0%} of tok/s{gain}"
    if knee.gain is None:
        return " knee: cannot tell from one level; give several, e.g. --concurrency 1,2,4,8"
    return f" knee: not reached up to {counted(knee.concurrency, 'client')}; the last doubling still gained{gain}"


def _tell_budget(budget: Budget | None, knee: Knee) -> Iterator[str]:
    if budget is None:
        yield " KV budget: not told by the server's metrics"
        return
    length = f"requests of {budget.request_tokens:.0f} tokens at once"
    if budget.seen_at is None:
        yield f" KV budget: {budget.cache_tokens:.0f} tokens, room for {budget.requests:.0f} {length}"
    else:
        yield f" KV budget: at most about {budget.requests:.0f} {length}, by what {counted(budget.seen_at, 'client')} took"
    if knee.concurrency is not None and budget.requests > 0:
        share = knee.concurrency / budget.requests
        where = "the knee" if knee.reached else "the last level"
        yield f"   {where} ({counted(knee.concurrency, 'client')}) takes {share:.0%} of it"


def _tell_memory(level: Level) -> str:
    told = []
    if (usage := level.readings.get("server_kv_cache_usage_peak")) is not None:
        capacity = level.readings.get("server_kv_cache_tokens")
        told.append(f"KV cache up to {usage:.0%} full" + (f" of {capacity:.0f} tokens" if capacity else ""))
    if waiting := level.readings.get("server_waiting_peak"):
        told.append(f"up to {waiting:.0f} requests waited in the server")
    if preempted := level.readings.get("server_preemptions"):
        told.append(f"{preempted:.0f} were preempted")
    queries, hits = (level.readings.get(f"server_prefix_cache_{name}", 0.0) for name in ("queries", "hits"))
    if queries and hits:
        told.append(f"{hits / queries:.0%} of prompt tokens came out of the prefix cache")
    return f" {level.concurrency} clients: {'; '.join(told)}" if told else ""
