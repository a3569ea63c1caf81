"""A run with servers: one that agrees with its client, one that something slows down on the way, one that tells nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from support.sample_runs import held, launch, result, run, variant

from suite.records import Run, VariantResult

CLIENT: Mapping[str, float] = {
    "client_requests": 40.0,
    "client_retries": 0.0,
    "client_overhead_s": 2.1e-5,
    "client_tokens_a_chunk": 1.0,
}
AGREES: Mapping[str, float] = {
    **CLIENT,
    "client_decode_tok_s": 163.8,
    "server_metrics_tok_s": 165.0,
    "server_decoded_requests": 40.0,
    "server_kv_cache_usage": 0.02,
    "server_kv_cache_tokens": 16384.0,
    "server_waiting": 0.0,
    "server_prefix_cache_queries": 5120.0,
    "server_prefix_cache_hits": 0.0,
}
SLOWED: Mapping[str, float] = {
    **CLIENT,
    "client_retries": 1.0,
    "client_tokens_a_chunk": 3.5,
    "client_decode_tok_s": 142.0,
    "server_decode_tok_s": 171.0,
    "server_kernel_tok_s": 175.0,
}
SILENT: Mapping[str, float] = {**CLIENT, "client_decode_tok_s": 173.0}
READINGS: Mapping[str, Mapping[str, float]] = {"q8_0": AGREES, "q5_k_m": SLOWED, "q4_k_m": SILENT}


def served() -> Run:
    """The reference in a worker, the others behind servers, three launches each."""
    names = ("fp16", *READINGS)
    return run(
        [result("fp16"), *(served_result(name, told) for name, told in READINGS.items())],
        findings=tuple(found for name in names for found in held(name)),
    )


def served_result(name: str, told: Mapping[str, float]) -> VariantResult:
    """A variant behind a server; the launches of the client's rate lie a little apart, and so do the server's."""
    launches = tuple(launch(name, index, readings=_varied(told, 1 + 0.002 * (index - 1))) for index in range(3))
    declared = variant(name, backend="server", make=None, options={"url": "http://127.0.0.1:8000"})
    return replace(result(name), variant=declared, launches=launches)


def _varied(told: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: value * factor if name.endswith("_tok_s") else value for name, value in told.items()}
