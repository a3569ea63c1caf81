"""The decode rate that a client sees is the one that its server tells."""

from __future__ import annotations

from suite.doctor.phrases import percent
from suite.doctor.rule import Rule, Said, cannot_be, found, passed
from suite.metrics.serving import served
from suite.records import Run, VariantResult

SLOWER = "look at what lies between them: a proxy or a buffer that holds chunks back, or too little CPU for the client"
FASTER = "the server counts other time or other tokens than its client, whose figures are the ones that are judged"


def check_rate(_: Run, result: VariantResult) -> Said:
    """Client against the server's own timings, log or counters, of the same requests."""
    told = served(result.launches)
    if told is None:
        return cannot_be("it is no server")
    if told.difference is None or told.client_tok_s is None or told.server_tok_s is None:
        return cannot_be("the server does not tell how fast it decoded")
    less = told.difference < 0
    evidence = (
        f"{told.client_tok_s:.3g} tok/s for the client, {told.server_tok_s:.3g} by the server's {told.source}: "
        f"{percent(abs(told.difference))} {'less' if less else 'more'}"
    )
    return found(evidence, SLOWER if less else FASTER) if told.is_apart else passed(evidence)


RULE = Rule(id="served-rate", title="decode rate of client and server", of_variant=check_rate)
