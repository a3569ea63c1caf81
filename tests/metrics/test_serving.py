"""What a server tells of itself beside what its client saw."""

from __future__ import annotations

import pytest
from support import sample_runs

from suite.metrics.serving import Served, served

COUNTED = {"client_decode_tok_s": 99.0, "server_metrics_tok_s": 100.0, "client_requests": 40.0}


def told_by(*readings: dict[str, float]) -> Served:
    found = served([sample_runs.launch(index=index, readings=told) for index, told in enumerate(readings)])
    assert found is not None
    return found


def test_what_tells_nothing_of_itself_is_no_server() -> None:
    assert served([]) is None
    assert served([sample_runs.launch()]) is None


@pytest.mark.parametrize(
    ("readings", "rate", "source"),
    [
        ({"server_decode_tok_s": 50.0}, 50, "timings"),
        ({"server_decode_tok_s": 50.0, "server_kernel_tok_s": 52.0}, 50, "log"),
        ({"server_decode_tok_s": 50.0, "server_metrics_tok_s": 40.0}, 50, "timings"),
        ({**COUNTED, "server_decoded_requests": 40.0}, 100, "metrics"),
        ({**COUNTED, "server_decoded_requests": 80.0}, None, ""),
        ({"client_decode_tok_s": 50.0}, None, ""),
        ({"server_decode_tok_s": 0.0}, None, ""),
    ],
)
def test_the_servers_own_rate_is_of_the_same_requests(
    readings: dict[str, float], rate: float | None, source: str
) -> None:
    found = told_by(readings)
    assert (found.server_tok_s, found.source) == (rate, source)


def test_client_and_server_are_held_together_launch_by_launch() -> None:
    pairs = ((90.0, 100.0), (180.0, 200.0), (27.0, 30.0))
    found = told_by(*({"client_decode_tok_s": client, "server_decode_tok_s": own} for client, own in pairs))
    assert found.difference == pytest.approx(-0.1)
    assert (found.client_tok_s, found.server_tok_s) == (90, 100)
    assert found.is_apart


@pytest.mark.parametrize(("client", "apart"), [(94.9, True), (95.1, False), (104.9, False), (105.1, True)])
def test_five_per_cent_either_way_are_apart(client: float, apart: bool) -> None:
    assert told_by({"client_decode_tok_s": client, "server_decode_tok_s": 100.0}).is_apart is apart


def test_one_that_does_not_tell_is_not_apart() -> None:
    found = told_by({"client_decode_tok_s": 94.0})
    assert (found.difference, found.is_apart) == (None, False)


def test_peaks_and_sums_over_launches() -> None:
    queries, hits = "server_prefix_cache_queries", "server_prefix_cache_hits"
    found = told_by(
        {"server_kv_cache_usage": 0.2, "server_waiting": 0.0, queries: 100.0, hits: 10.0, "client_retries": 1.0},
        {"server_kv_cache_usage": 0.1, "server_waiting": 2.0, queries: 300.0, hits: 10.0, "client_retries": 2.0},
    )
    assert (found.kv_usage, found.waiting, found.prefix_hits, found.retries) == (0.2, 2, 0.05, 3)
    nothing = told_by({queries: 0.0, hits: 0.0, "server_running": 0.0})
    assert (nothing.prefix_hits, nothing.kv_usage, nothing.waiting, nothing.retries) == (None,) * 4
