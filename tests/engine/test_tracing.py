"""The reference writes its answers down; others are forced through them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from support.in_process import InProcessLauncher, make_case, make_variant

from suite.engine.launching import LiveVariant
from suite.engine.tracing import (
    DECODED,
    LONGEST,
    TOP,
    Peer,
    force_case,
    hash_traced,
    pick_decoded,
    rows_of,
    trace_case,
)
from suite.errors import VariantError, VariantInvalid, WorkerDied
from suite.packed import pack
from suite.records import Generation, Trace, TracedCase
from suite.store.traces import decode, encode

CASE = make_case("math/a")
PROMPT = tuple(b"How many?")
Launch = Callable[..., LiveVariant]


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Variants of the scripted model, loaded until the test ends."""
    with ExitStack() as stack:
        yield lambda name="fp", **options: stack.enter_context(
            InProcessLauncher().launch(make_variant(name, **{"reply": "18", "logprob": -0.5, **options}))
        )


def said(text: str = "18", finish: str = "stop") -> Generation:
    return Generation(
        token_ids=tuple(text.encode()), text=text, finish_reason=finish, prompt_tokens=9, evaluated_tokens=9,  # type: ignore[arg-type]
        prefill_s=0.1, token_times_s=(0.2,) * len(text),
    )  # fmt: skip


def traced_by(live: LiveVariant, generation: Generation | None = None) -> TracedCase:
    found = trace_case(live, CASE, PROMPT, generation or said())
    assert found is not None
    return found


def forced(live: LiveVariant, traced: TracedCase, **more: Any) -> Any:
    found = force_case(live, traced, **{"decoded": False, **more})
    assert found is not None
    return found[0]


# ------------------------------------------------------------------------------------------ the trace


def test_an_answer_is_traced_with_its_end_and_64_tokens_at_each_position(launch: Launch) -> None:
    traced = traced_by(launch())
    assert (traced.case, traced.version, traced.domain, traced.prompt_ids) == ("math/a", 1, "math", PROMPT)
    assert traced.answer_ids == (*b"18", 0)
    assert traced.logprobs == pytest.approx([-0.5] * 3)
    rows = rows_of(traced)
    assert rows.ids.shape == rows.logprobs.shape == (3, TOP)
    assert rows.ids[:, 0].tolist() == list(traced.answer_ids)
    for row, rest in zip(rows.logprobs.tolist(), traced.rest, strict=True):
        assert row == sorted(row, reverse=True)
        assert row[0] > row[1]
        assert math.fsum(map(math.exp, (*row, rest))) == pytest.approx(1.0, abs=1e-5)


def test_an_answer_that_was_cut_off_has_no_end(launch: Launch) -> None:
    assert traced_by(launch(), said(finish="length")).answer_ids == tuple(b"18")


def test_a_long_answer_is_traced_as_far_as_it_goes(launch: Launch) -> None:
    traced = traced_by(launch(), said("x" * (LONGEST + 1)))
    assert traced.answer_ids == tuple(b"x" * LONGEST)
    assert len(traced.rest) == LONGEST


def test_nothing_said_is_nothing_to_trace_but_an_end_at_once_is(launch: Launch) -> None:
    assert trace_case(launch(), CASE, PROMPT, said("", "length")) is None
    live = launch(reply="")
    assert traced_by(live, said("")).answer_ids == (0,)


def test_a_reference_whose_logits_are_no_numbers_is_invalid_and_says_where(launch: Launch) -> None:
    with pytest.raises(VariantInvalid, match="case math/a: the logits of the reference are no numbers at position 1"):
        trace_case(launch(broken_at=1), CASE, PROMPT, said())


def test_the_hash_is_that_of_everything_and_outlives_a_file(launch: Launch) -> None:
    traced = traced_by(launch())
    trace = Trace(model="toy", reference="fp", key={"model": "toy"}, top=TOP, cases={traced.case: traced})
    again = decode(encode(trace), where="trace.npz").cases[traced.case]
    assert again == traced
    assert hash_traced(again) == hash_traced(traced)
    changes: list[dict[str, Any]] = [
        {"version": 2},
        {"prompt_ids": (1,)},
        {"answer_ids": (*traced.answer_ids[:-1], 7)},
        {"logprobs": (*traced.logprobs[:-1], -0.25)},
        {"rest": (*traced.rest[:-1], -0.25)},
        {"top_ids": traced.top_logprobs},
        {"top_logprobs": traced.top_ids},
    ]
    hashes = {hash_traced(dataclasses.replace(traced, **change)) for change in changes}
    assert len(hashes | {hash_traced(traced)}) == 8


def test_the_rows_of_the_reference_are_those_that_were_written_down(launch: Launch) -> None:
    traced = traced_by(launch())
    rows = rows_of(traced)
    assert rows.best.tolist() == list(traced.answer_ids)
    assert rows.logprobs.shape == rows.ids.shape == (3, TOP)
    assert rows.broken == ()


def test_the_decoded_cases_are_always_the_same_whatever_their_order() -> None:
    cases = [f"math/{number:03}" for number in range(80)]
    picked = pick_decoded(cases)
    assert len(picked) == DECODED
    assert picked == pick_decoded(reversed(cases))
    assert len(picked - pick_decoded(cases[1:])) <= 1, "one case less moves one case at most"
    assert pick_decoded(cases[:3]) == set(cases[:3])


# ------------------------------------------------------------------------------------------ forced through it


def test_the_reference_itself_is_no_distance_from_its_trace(launch: Launch) -> None:
    live = launch()
    batched, decoded = forced(live, traced_by(live), decoded=True)
    assert (batched.path, decoded.path) == ("batched", "decode")
    assert batched.kld == decoded.kld == (0.0, 0.0, 0.0)
    assert decoded.distance == (0.0, 0.0, 0.0)
    assert batched.departures == decoded.departures == ()
    assert batched.logprobs == batched.reference_logprobs
    assert (batched.distance, batched.peer, batched.peer_kld) == (None, None, None)


def test_a_noisy_variant_is_some_way_off_and_is_told_position_by_position(launch: Launch) -> None:
    traced = traced_by(launch())
    (found,) = forced(launch("q4", noise=1.0), traced)
    assert (found.variant, found.case, found.domain, found.family) == ("q4", "math/a", "math", None)
    assert found.trace == hash_traced(traced)
    assert len(found.kld) == len(found.logprobs) == 3
    assert all(value > 0.01 for value in found.kld)
    assert found.reference_logprobs == pytest.approx([-0.5] * 3)


def test_where_it_would_go_another_way_that_is_told_with_both_likelihoods(launch: Launch) -> None:
    traced = traced_by(launch())
    (found,) = forced(launch("q4", reply="1x"), traced)  # the second token is another one
    (departure,) = found.departures
    assert (departure.position, departure.token) == (1, ord("x"))
    assert departure.logprob == pytest.approx(-0.5, abs=1e-3)
    assert departure.lead > 0
    assert departure.lead == pytest.approx(departure.logprob - found.logprobs[1], abs=1e-3)


def test_a_decode_path_of_its_own_is_seen_on_that_path_alone(launch: Launch) -> None:
    traced = traced_by(launch())
    batched, decoded = forced(launch("q4", path_noise=0.5), traced, decoded=True)
    assert batched.kld == (0.0, 0.0, 0.0)
    assert decoded.distance == pytest.approx(decoded.kld, rel=1e-3)
    assert all(value > 0 for value in decoded.distance)


def test_what_quantization_alone_did_is_measured_from_the_peer(launch: Launch) -> None:
    traced = traced_by(launch())
    q4 = launch("q4", noise=1.0)
    found = force_case(q4, traced, decoded=False)
    assert found is not None
    own = found[1]
    (beside_itself,) = forced(q4, traced, peer=Peer("f16", own))
    assert (beside_itself.peer, beside_itself.peer_kld) == ("f16", (0.0, 0.0, 0.0))
    (beside_reference,) = forced(q4, traced, peer=Peer("f16", rows_of(traced)))
    assert beside_reference.peer_kld == beside_reference.kld


def test_broken_positions_are_named_and_depart_to_nowhere(launch: Launch) -> None:
    traced = traced_by(launch())
    batched, decoded = forced(launch("q4", broken_at=1, noise=0.5), traced, decoded=True)
    for found in (batched, decoded):
        assert found.broken == (1,)
        assert (found.kld[1], found.logprobs[1]) == (0.0, 0.0)
        assert not any(departure.position == 1 for departure in found.departures)
    assert decoded.distance[1] is None
    assert None not in (decoded.distance[0], decoded.distance[2])


def test_numbers_are_kept_to_five_digits(launch: Launch) -> None:
    (found,) = forced(launch("q4", noise=1.0), traced_by(launch()))
    for value in (*found.kld, *found.logprobs):
        assert value == float(f"{value:.5g}")


def test_a_trace_of_another_vocabulary_is_invalid(launch: Launch) -> None:
    traced = traced_by(launch())
    ids = rows_of(traced).ids.copy()
    ids[0, 0] = 9_999
    foreign = dataclasses.replace(traced, top_ids=pack(ids))
    with pytest.raises(VariantInvalid, match=r"case math/a: token 9999 is asked for.*the trace is of another model"):
        force_case(launch("q4"), foreign, decoded=False)


def test_a_variant_that_cannot_be_forced_says_none_and_one_that_has_no_room_why(launch: Launch) -> None:
    traced = traced_by(launch())
    small = launch("small")
    small.worker._server._model.context_tokens = 8  # type: ignore[attr-defined]
    with pytest.raises(VariantError, match="do not fit a context of 8"):
        force_case(small, traced, decoded=False)
    deaf = launch("deaf")
    deaf.worker._server._model = object()  # type: ignore[attr-defined]
    assert force_case(deaf, traced, decoded=True) is None


def test_a_worker_that_dies_is_not_taken_for_one_that_cannot(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    traced, live = traced_by(launch()), launch("q4")

    def die(*_: object) -> Any:
        raise WorkerDied("killed by SIGKILL")

    monkeypatch.setattr(type(live.worker), "ask", die)
    with pytest.raises(WorkerDied):
        force_case(live, traced, decoded=False)
