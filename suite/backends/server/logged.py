"""What llama.cpp writes into the log of a server that runs it: its own count and its own times, request by request."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

PROMPT = re.compile(r"prompt eval time =\s*([\d.]+) ms /\s*(\d{1,15}) tokens")
STEPS = re.compile(r"(?<!prompt )eval time =\s*([\d.]+) ms /\s*(\d{1,15}) runs")
TOTAL = re.compile(r"total time =\s*([\d.]+) ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """One request, by `llama_perf_context_print`."""

    prompt_tokens: int
    """Evaluated in batches of more than one token."""
    prompt_s: float
    steps: int
    """Tokens evaluated one at a time; never less than 1."""
    kernel_s: float
    """Time within `llama_decode` of those."""
    total_s: float

    @property
    def decode_s(self) -> float:
        """All but the prompt's evaluation: sampling and all that the server does between two steps."""
        return self.total_s - self.prompt_s

    def evaluated(self, new_tokens: int, *, ended: bool) -> int:
        """Prompt tokens that were evaluated. A last batch of a single one is logged as a step.

        `ended`: an end token was sampled after the new ones, so each of those was a step.
        """
        usual = new_tokens if ended else new_tokens - 1
        return self.prompt_tokens + (max(self.steps - usual, 0) if usual > 0 else 0)


def read_log(text: str) -> Logged | None:
    """The last request in a piece of a log; None where there is none, or where its numbers are none."""
    prompts, steps, totals = PROMPT.findall(text), STEPS.findall(text), TOTAL.findall(text)
    if not prompts or not steps or not totals:
        return None
    try:
        found = Logged(
            prompt_tokens=int(prompts[-1][1]),
            prompt_s=float(prompts[-1][0]) / 1000,
            steps=int(steps[-1][1]),
            kernel_s=float(steps[-1][0]) / 1000,
            total_s=float(totals[-1]) / 1000,
        )
    except ValueError:  # more digits than Python reads, or several points
        return None
    return found if all(map(math.isfinite, (found.prompt_s, found.kernel_s, found.total_s))) else None
