"""From a declared variant to a worker that holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite import backends
from suite.backends.base import Remembering
from suite.engine.demand import demand_of, kv_types
from suite.engine.distributions import Rows, unpack
from suite.engine.environment import default_threads
from suite.engine.preparing import Prepared, Preparer
from suite.engine.progress import Progress
from suite.errors import VariantError
from suite.records import Case, Deadlines, Demand, Generation, Variant, Witness
from suite.worker.messages import (
    Encode,
    Force,
    Generate,
    Generated,
    Load,
    Loaded,
    Measure,
    Memory,
    Render,
    Request,
    Unload,
    Unloaded,
    Weigh,
)
from suite.worker.process import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveVariant:
    """A variant in the memory of a worker."""

    variant: Variant
    prepared: Prepared
    worker: Worker
    loaded: Loaded
    deadlines: Deadlines

    def render(self, cases: Sequence[Case]) -> Mapping[str, tuple[int, ...]]:
        """Token ids by case id."""
        chats = {case.id: messages_of(case.prompt, case.system) for case in cases}
        ids: Mapping[str, list[int]] = self.worker.ask(Render(chats=chats), self.deadlines.answer_s).ids
        return {case: tuple(tokens) for case, tokens in ids.items()}

    def render_one(self, prompt: str, system: str | None = None) -> tuple[int, ...]:
        """Token ids of one prompt."""
        request = Render(chats={"prompt": messages_of(prompt, system)})
        return tuple(self.worker.ask(request, self.deadlines.answer_s).ids["prompt"])

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of plain text."""
        return tuple(self.worker.ask(Encode(text=text), self.deadlines.answer_s).ids)

    def generate(
        self, prompt: Sequence[int], max_new_tokens: int, *, stop_at_end: bool, logprobs: bool = False
    ) -> tuple[Generation, Witness]:
        """One greedy generation after the state was cleared. `logprobs` asks for those of its tokens, which takes time."""
        request = Generate(
            prompt=list(prompt), max_new_tokens=max_new_tokens, stop_at_end=stop_at_end, logprobs=logprobs
        )
        answer: Generated = self.worker.ask(request, self.deadlines.answer_s)
        generation = Generation(
            token_ids=tuple(answer.token_ids),
            text=answer.text,
            finish_reason=answer.finish_reason,
            prompt_tokens=answer.prompt_tokens,
            evaluated_tokens=answer.evaluated_tokens,
            prefill_s=answer.prefill_s,
            token_times_s=tuple(answer.token_times_s),
            logprobs=_shorten(answer.logprobs),
        )
        witness: dict[str, Any] = dict(answer.witness)
        return generation, Witness(**witness)

    def weigh(self, prompt: Sequence[int], answer: Sequence[int]) -> tuple[float, ...] | None:
        """Log-probability of each token of `answer` after `prompt`; None when the backend cannot tell."""
        request = Weigh(prompt=list(prompt), answer=list(answer))
        return _shorten(self.worker.ask(request, self.deadlines.answer_s).logprobs)

    def force(
        self,
        prompt: Sequence[int],
        answer: Sequence[int],
        *,
        batched: bool,
        top: int = 0,
        asked: Sequence[Sequence[int]] | None = None,
    ) -> Rows | None:
        """What the variant's logits say along `answer`: of the tokens `asked` for at each position, or of the `top` likeliest.

        None when the backend cannot be forced. Raises what a request raises.
        """
        request = Force(
            prompt=list(prompt),
            answer=list(answer),
            batched=batched,
            top=top,
            asked=None if asked is None else [list(ids) for ids in asked],
        )
        return unpack(self.worker.ask(request, self.deadlines.answer_s))

    def ask(self, request: Request) -> Any:
        """What the worker answers within the time for an answer. Raises what a request raises."""
        return self.worker.ask(request, self.deadlines.answer_s)

    def load(self) -> Loaded:
        """Load the variant into its worker, as it was launched. Raises LoadError and its kin."""
        return load(self.worker, self.variant, self.prepared, self.deadlines)

    def unload(self) -> int | None:
        """Free the model, and the bytes that the worker still holds."""
        answer: Unloaded = self.worker.ask(Unload(), self.deadlines.load_s)
        return answer.held_bytes

    def kv_cache_bytes(self, tokens: int) -> int | None:
        """The computed size of a KV cache for `tokens` tokens, of the types that the options or the weights' type give; None
        for a type whose size is not known.
        """
        try:
            return self.prepared.kv_cache_bytes(tokens, *kv_types(self.variant.options, self.loaded.facts))
        except VariantError:
            return None

    def demand(self) -> Demand | None:
        """What a token demands of it; None where the headers of its weights do not tell, and of a model elsewhere: a server
        may hold weights and cache in other types than the file has.
        """
        if self.loaded.remote:
            return None
        return demand_of(self.prepared.anatomy, self.variant.options, self.loaded.facts)

    def memory(self) -> Memory:
        """Memory of the worker now."""
        answer: Memory = self.worker.ask(Measure(), self.deadlines.answer_s)
        return answer


def _shorten(logprobs: Sequence[float] | None) -> tuple[float, ...] | None:
    """Six significant digits: the rest is noise, and there is one for every token of a run."""
    return None if logprobs is None else tuple(float(f"{value:.6g}") for value in logprobs)


def messages_of(prompt: str, system: str | None) -> list[dict[str, str]]:
    """The chat that a prompt is sent as."""
    head = [{"role": "system", "content": system}] if system else []
    return [*head, {"role": "user", "content": prompt}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """Launches variants: fresh process, weights loaded, options in force."""

    preparer: Preparer
    deadlines: Deadlines
    logs: Path
    """Directory of the workers' standard error, one file a variant."""
    progress: Progress
    cpus: tuple[int, ...] = ()
    """The CPUs on which workers run; none leaves that to the system."""

    @contextmanager
    def launch(self, variant: Variant, index: int = 0) -> Iterator[LiveVariant]:
        """A fresh worker with the variant loaded; it is gone afterwards.

        Raises Unavailable when the backend or the weights cannot be had, LoadError and its kin when they are broken,
        VariantError when the system refuses a process, a log or a file.
        """
        if variant.python is None:
            backends.require(variant.backend)
        prepared = self.preparer.prepare(variant)
        self.progress(f"loading {variant.name}")
        with self._start(variant, index) as worker:
            loaded = load(worker, variant, prepared, self.deadlines)
            if variant.python is not None:
                check_libraries(variant, loaded)
            yield LiveVariant(
                variant=variant, prepared=prepared, worker=worker, loaded=loaded, deadlines=self.deadlines
            )

    def _start(self, variant: Variant, index: int) -> Worker:
        log = self.logs / f"{variant.name}.log"
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            return Worker(
                variant.name,
                log=log,
                launch=index,
                cpus=self.cpus,
                python=variant.python,
                passing=named_variables(variant),
            )
        except OSError as error:
            raise VariantError(
                f"variants.{variant.name}: its worker could not be started (log {log}): {error}; "
                "look for free memory and processes, and whether the directory can be written to"
            ) from error


def load(worker: Worker, variant: Variant, prepared: Prepared, deadlines: Deadlines) -> Loaded:
    """Have a worker load a variant. Raises LoadError and its kin."""
    request = Load(
        backend=variant.backend,
        weights=str(prepared.weights) if prepared.weights else None,
        options=options_in_force(variant),
        prompt_format=variant.prompt_format,
    )
    loaded: Loaded = worker.ask(request, deadlines.load_s)
    return loaded


def check_libraries(variant: Variant, loaded: Loaded) -> None:
    """Raise VariantError when another interpreter loaded a library that is not its own: it would be measured as its own."""
    for module, file in loaded.libraries.items():
        if file and not any(_lies_in(file, prefix) for prefix in loaded.prefixes):
            raise VariantError(
                f"variants.{variant.name}: {variant.python} imports {module} from {file}, which is not its own; install it "
                "into that environment, and take it out of PYTHONPATH and of the project"
            )


def _lies_in(file: str, prefix: str) -> bool:
    """As it is named, or with links followed: environments link to what others hold."""
    return Path(file).is_relative_to(prefix) or Path(file).resolve().is_relative_to(Path(prefix).resolve())


def named_variables(variant: Variant) -> list[str]:
    """Environment variables that the variant's options name: an option called ``…_env`` says where a secret is to be found."""
    return [str(value) for name, value in variant.options.items() if name.endswith("_env") and value]


def options_in_force(variant: Variant) -> dict[str, Any]:
    """The declared options; threads that were left open are the machine's physical cores."""
    options = dict(variant.options)
    if "n_threads" in options and options["n_threads"] is None:
        options["n_threads"] = default_threads()
    return options


def remembers(variant: Variant) -> bool:
    """Whether it may answer a prompt out of what it kept of an earlier run."""
    backend = backends.resolve(variant.backend)
    return isinstance(backend, Remembering) and backend.remembers(variant.options)
