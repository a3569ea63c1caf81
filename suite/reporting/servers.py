"""What servers tell of themselves beside what their client saw: the model of it, and its section. In no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suite.metrics.serving import Served, served
from suite.records import Run
from suite.reporting import wording
from suite.reporting.hostile import markdown, markdown_code

HEADS = (
    "variant",
    "client tok/s",
    "server tok/s",
    "difference",
    "overhead a chunk",
    "tokens a chunk",
    "KV cache used",
    "waiting",
    "prefix-cache hits",
    "retries",
)

NOTE = (
    "Decode rates are medians over launches; the server's own is by its timings, its log or its metrics, of the same requests. "
    "Difference: client / server − 1, launch by launch. KV cache and waiting requests: the most that it told when a launch was "
    "over. Prefix-cache hits: of the prompt tokens that it looked up. –: not told."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """One variant that is served."""

    variant: str
    told: Served

    @property
    def disagreement(self) -> str:
        """A sentence where client and server are apart, else nothing."""
        told = self.told
        if not told.is_apart or told.difference is None:
            return ""
        client, own = wording.rate(told.client_tok_s), wording.rate(told.server_tok_s)
        return (
            f"{self.variant}: its client saw {client} tok/s, and by its {told.source} the server decoded {own} tok/s "
            f"({difference(told.difference)}); what is judged is what the client saw"
        )


def measured_servers(run: Run) -> tuple[ServerRow, ...]:
    """The variants of a run that are served, in its order."""
    return tuple(
        ServerRow(variant=result.variant.name, told=told)
        for result in run.variants
        if (told := served(result.launches)) is not None
    )


def difference(share: float | None) -> str:
    """``+0.4 %``, ``−16.0 %``, or a dash."""
    if share is None:
        return wording.ABSENT
    digits = f"{100 * abs(share):.1f}"
    sign = "" if not float(digits) else "+" if share > 0 else "−"
    return f"{sign}{digits} %"


def cells(row: ServerRow) -> tuple[str, ...]:
    """One row as text, in the order of `HEADS`; the name as it is."""
    told = row.told
    own = wording.rate(told.server_tok_s)
    used = _share(told.kv_usage)
    return (
        row.variant,
        wording.rate(told.client_tok_s),
        f"{own} ({told.source})" if told.source else own,
        difference(told.difference),
        wording.duration(told.overhead_s),
        wording.ABSENT if told.tokens_a_chunk is None else f"{told.tokens_a_chunk:.2f}",
        used if told.kv_tokens is None else f"{used} of {told.kv_tokens:.0f} tokens",
        _count(told.waiting),
        _share(told.prefix_hits),
        _count(told.retries),
    )


def _share(share: float | None) -> str:
    return wording.ABSENT if share is None else f"{100 * share:.0f} %"


def _count(number: float | None) -> str:
    return wording.ABSENT if number is None else f"{number:.0f}"


def servers_markdown(rows: Sequence[ServerRow]) -> Iterator[str]:
    """The section of ``report.md``; nothing without a server."""
    if not rows:
        return
    yield "## Servers"
    yield ""
    yield f"| {' | '.join(HEADS)} |"
    yield f"| --- |{' ---: |' * (len(HEADS) - 1)}"
    for row in rows:
        name, *others = cells(row)
        yield f"| {' | '.join([markdown_code(name), *others])} |"
    yield ""
    yield NOTE
    yield ""
    apart = [row.disagreement for row in rows if row.disagreement]
    yield from (f"- {markdown(sentence)}" for sentence in apart)
    yield from [""] if apart else []
