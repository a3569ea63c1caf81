"""What may be said of a server in a matrix file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from suite.backends.llama_cpp import MAKES

Kind = Literal["auto", "vllm", "llama-server", "llama_cpp.server", "ollama", "openai"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Options of the ``server`` backend: an endpoint that speaks OpenAI's protocol, there already or started for the run."""

    MAKES: ClassVar[tuple[str, ...]] = MAKES

    url: str = ""
    """``http://host:port``; a ``/v1`` behind it is cut off. Left out with `command`, which listens at a free port here."""
    served_model: str = ""
    """The model's name in requests; left out, the only one that the server lists."""
    kind: Kind = "auto"
    """Which server it is, since each has its own way to take token ids and to forget; ``openai`` asks for nothing special."""
    endpoint: Literal["completions", "chat"] = "completions"
    """``chat`` sends messages, which the server's template turns into tokens: their number must come back equal."""
    prompts: Literal["auto", "ids", "text"] = "auto"
    """How ``completions`` are asked: as token ids where the server takes them, else as text that encodes to the same ids."""
    tokenizer: Literal["weights", "server"] = "weights"
    """Where token ids come from: the variant's weights on this disk, or the server's own tokenizer where it offers one."""
    prefix_cache: Literal["auto", "salt", "off", "flush", "trust"] = "auto"
    """How a prompt is kept from being answered out of a cache: a salt of its own (vLLM), a field that turns the cache off
    (llama-server), a throwaway request before it (servers with one slot), or not at all, with what the server tells."""
    logprobs: bool = False
    """Ask for the log-probabilities of answers, where the server gives those of each token."""
    prompt_logprobs: int = 0
    """How many of the likeliest tokens at each position of a prompt the server is asked for, where it tells them (vLLM,
    started with ``--max-logprobs``): 256 tell almost all that fidelity looks at. 0 asks for none: fidelity stays unknown."""
    n_ctx: int | None = None
    """Prompt and answer together, tokens; None asks the server."""
    n_threads: int | None = None
    """For ``{threads}`` in `command`; None is the machine's physical cores."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key. It reaches this variant's worker alone, and no report."""
    connect_s: float = 5.0
    first_token_s: float = 120.0
    chunk_s: float = 30.0
    """Seconds without a further token, after which a request has failed."""
    retries: int = 3
    """How often a server that says "later" (429, 503) before its answer began is asked again. Never after a token came."""
    extra_body: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    """Further fields of each request."""
    metrics: str = ""
    """Path of the server's metrics in Prometheus' text format, e.g. ``/metrics``."""
    command: tuple[str, ...] = ()
    """Starts the server for this variant alone. ``{port}``, ``{weights}``, ``{model}``, ``{threads}`` and ``{n_ctx}`` are
    filled in."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for `command`, beside those that find programs and libraries. No place for keys."""
    health: str = ""
    """Path that answers 200 when the server is ready; left out, ``/health``, or else ``/v1/models``."""
    startup_s: float = 600.0
