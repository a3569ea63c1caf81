"""What a worker does with each request. Runs in the worker process, with standard library and backend only."""

from __future__ import annotations

import gc
import math
import platform
import site
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from suite import backends, clock
from suite.backends.base import (
    Arrived,
    Backend,
    Batching,
    Continuing,
    Forcing,
    LoadedModel,
    Prefilled,
    Probing,
    Remote,
    Scoring,
    Seeing,
    Stopping,
    Telling,
    Weighing,
)
from suite.errors import LoadError, QuantdriftError, Unavailable, UsageError, VariantInvalid
from suite.worker import memory
from suite.worker.forcing import examine, examine_told
from suite.worker.messages import (
    Encode,
    Encoded,
    Examined,
    Failed,
    Force,
    Generate,
    GenerateBatch,
    Generated,
    GeneratedBatch,
    Load,
    Loaded,
    Made,
    Make,
    Measure,
    Memory,
    Probe,
    Probed,
    Render,
    Rendered,
    Request,
    Response,
    Unload,
    Unloaded,
    Weigh,
    Weighed,
)
from suite.worker.probing import CpuProbe
from suite.worker.stopwatch import time_stream
from suite.worker.throttling import ThrottleWatch
from suite.worker.witness import Observer


class Server:
    """Holds at most one model."""

    def __init__(self) -> None:
        self._model: LoadedModel | None = None
        self._peak_device: int | None = None
        self._throttling: ThrottleWatch | None = None
        self._cpus: CpuProbe | None = None

    def answer(self, request: Request) -> Response:
        """Do what is asked. A failure of the library becomes `Failed`; the worker lives on."""
        try:
            return self._dispatch(request)
        except Unavailable as fault:
            return Failed(kind="unavailable", message=str(fault))
        except LoadError as fault:
            return Failed(kind="load", message=str(fault))
        except VariantInvalid as fault:
            return Failed(kind="invalid", message=str(fault))
        except (UsageError, QuantdriftError) as fault:
            return Failed(kind="usage", message=str(fault))
        except Exception as fault:  # noqa: BLE001 - the boundary of the process: whatever a library raises is an answer
            return Failed(kind="failure", message=f"{type(fault).__name__}: {fault}")

    def _dispatch(self, request: Request) -> Response:
        """What each request is answered by."""
        answers: Mapping[type, Callable[[Any], Response]] = {
            Load: self._load,
            Render: self._render,
            Encode: lambda asked: Encoded(ids=self._loaded.encode(asked.text)),
            Generate: self._generate,
            GenerateBatch: self._generate_batch,
            Weigh: self._weigh,
            Force: self._force,
            Measure: lambda _: self._measure(),
            Probe: self._probe,
            Unload: lambda _: self._unload(),
            Make: _make,
        }
        return answers[type(request)](request)

    def _render(self, request: Render) -> Rendered:
        return Rendered(ids={case: self._loaded.render(chat) for case, chat in request.chats.items()})

    @property
    def _loaded(self) -> LoadedModel:
        if self._model is None:
            raise UsageError("no model is loaded in this worker")
        return self._model

    def _load(self, request: Load) -> Loaded:
        begin = clock.monotonic()
        backend: Backend = backends.resolve(request.backend)
        for module in backend.requires:
            __import__(module)
        imported = clock.monotonic()
        options = backend.options(**request.options)
        weights = Path(request.weights) if request.weights else None
        model = backend.load(weights, options, request.prompt_format)
        self._model = model
        ready = clock.monotonic()
        self._throttling = ThrottleWatch()
        return Loaded(
            load_s=ready - imported,
            import_s=imported - begin,
            context_tokens=model.context_tokens,
            threads=model.threads,
            facts=dict(model.facts),
            simulated=model.clock is not clock.monotonic,
            python=platform.python_version(),
            prefixes=[sys.prefix, sys.base_prefix, *site.getsitepackages()],
            libraries={module: _file_of(module) for module in backend.requires},
            remote=isinstance(model, Remote),
        )

    def _generate(self, request: Generate) -> Generated:
        model = self._loaded
        telling = model if isinstance(model, Telling) else None
        if telling is not None:
            telling.keep_logprobs = request.logprobs
        if isinstance(model, Stopping):
            model.stop_at_end = request.stop_at_end
        observer = Observer(model.threads, model.process_ids() if isinstance(model, Remote) else ())
        stream = _stream(model, request)
        is_end: Callable[[int], bool] = model.is_end if request.stop_at_end else _never
        observer.start()
        timed = time_stream(model.clock, stream, is_end, watch=request.watch, read=self._held_beside_cache)
        witness = observer.stop(simulated=model.clock is not clock.monotonic)
        self._watch_device()
        return Generated(
            token_ids=timed.tokens,
            text=model.decode(timed.tokens),
            finish_reason="stop" if timed.ended else "length",
            prompt_tokens=len(request.prompt),
            evaluated_tokens=timed.evaluated,
            prefill_s=timed.prefill_s,
            token_times_s=timed.times_s,
            witness=witness,
            logprobs=_told(telling.logprobs, len(timed.tokens)) if telling and request.logprobs else None,
            held_bytes=self._held(),
            memory=timed.memory,
        )

    def _generate_batch(self, request: GenerateBatch) -> GeneratedBatch:
        model = self._loaded
        if not isinstance(model, Batching):
            raise Unavailable("its backend decodes one sequence at a time")
        if isinstance(model, Weighing):
            model.keep_logprobs = False
        observer = Observer(model.threads)
        stream = model.stream_batch(request.prompts, request.max_new_tokens)
        observer.start()
        timed = time_stream(model.clock, stream, _never)
        witness = observer.stop(simulated=model.clock is not clock.monotonic)
        self._watch_device()
        return GeneratedBatch(
            token_ids=[list(sequence) for sequence in zip(*timed.tokens, strict=True)],
            prompt_tokens=sum(map(len, request.prompts)),
            evaluated_tokens=timed.evaluated,
            prefill_s=timed.prefill_s,
            token_times_s=timed.times_s,
            witness=witness,
            held_bytes=self._held(),
        )

    def _held(self) -> int | None:
        """Anonymous memory; None of a model that lies in other processes."""
        model = self._loaded
        return None if isinstance(model, Remote) else memory.held_bytes()

    def _held_beside_cache(self) -> int | None:
        """Memory of this process, and what an accelerator holds for it, without the KV cache as far as the backend tells its
        size: that one may grow. None where the model lies on an accelerator whose memory cannot be read.
        """
        held, cache, device = self._held(), self._loaded.kv_cache_bytes(), memory.device_bytes()
        if held is None or (device is None and self._loaded.device_bytes() is not None):
            return None
        return held + (device or 0) - (cache[0] if cache else 0)

    def _unload(self) -> Unloaded:
        if self._model is not None:
            self._model.close()
            self._model = None
        gc.unfreeze()  # what was frozen after the load may be what has to go
        gc.collect()  # what is in a cycle is not held by the library
        return Unloaded(held_bytes=_held_anywhere())

    def _weigh(self, request: Weigh) -> Weighed:
        model = self._loaded
        if not isinstance(model, Weighing):
            return Weighed(logprobs=None)
        return Weighed(logprobs=_finite(model.weigh(request.prompt, request.answer)))

    def _force(self, request: Force) -> Examined:
        model = self._loaded
        if isinstance(model, Scoring) and request.batched:
            told = model.score(request.prompt, request.answer)
            if told is not None:
                return examine_told(told, request.answer, top=request.top, asked=request.asked)
        if not isinstance(model, Forcing):
            return Examined(width=0, chosen="", best="", best_logprob="", ids="", logprobs="", rest="", broken=[])
        rows = model.force(request.prompt, request.answer, batched=request.batched)
        return examine(rows, request.answer, top=request.top, asked=request.asked)

    def _measure(self) -> Memory:
        self._watch_device()
        model = self._loaded
        cache = model.kv_cache_bytes()
        remote = model if isinstance(model, Remote) else None
        seen = self._throttling.read() if self._throttling else {}
        return Memory(
            peak_rss_bytes=memory.peak_rss_of(remote.process_ids()) if remote else memory.peak_rss_bytes(),
            uss_bytes=memory.uss_of(remote.process_ids()) if remote else memory.uss_bytes(),
            peak_device_bytes=self._peak_device,
            kv_cache_bytes=cache[0] if cache else None,
            kv_cache_tokens=cache[1] if cache else None,
            seen={**seen, **(model.seen if isinstance(model, Seeing) else {})},
            held_bytes=None if remote else _held_anywhere(),
            readings=dict(remote.readings()) if remote else {},
        )

    def _probe(self, request: Probe) -> Probed:
        if isinstance(self._model, Probing):
            return Probed(**asdict(self._model.probe(request.size_bytes)))
        if self._model is not None:
            raise Unavailable("its backend gives no way of measuring the device that it runs on")
        if self._cpus is None or self._cpus.threads != request.threads:
            if self._cpus is not None:
                self._cpus.close()
            self._cpus = CpuProbe(request.threads)
        return Probed(**asdict(self._cpus.read(request.size_bytes)))

    def end(self) -> None:
        """Let go of what would outlive this process: a server that was started for the model."""
        if isinstance(self._model, Remote):
            self._loaded.close()

    def _watch_device(self) -> None:
        model = self._loaded
        holders = model.process_ids() if isinstance(model, Remote) else None
        seen = [value for value in (memory.device_bytes(holders), model.device_bytes(), self._peak_device) if value]
        self._peak_device = max(seen, default=None)


def _file_of(module: str) -> str:
    """Where an imported module lies; a namespace has no file, but a directory."""
    found = sys.modules[module]
    places = [getattr(found, "__file__", None), *getattr(found, "__path__", ())]
    return next((str(place) for place in places if place), "")


def _finite(logprobs: list[float]) -> list[float] | None:
    """None when one is no number: logits of broken weights may be NaN, which no message carries."""
    return logprobs if all(map(math.isfinite, logprobs)) else None


def _told(logprobs: list[float], tokens: int) -> list[float] | None:
    """Those of the answer's tokens: that of an end token is left out, as the token is. None where a server told of fewer."""
    return _finite(logprobs[:tokens]) if len(logprobs) >= tokens else None


def _make(request: Make) -> Made:
    backends.resolve(request.backend).make(request.recipe, Path(request.source), Path(request.destination))
    return Made()


def _never(_token: object) -> bool:
    return False


def _stream(model: LoadedModel, request: Generate) -> Iterator[Prefilled | Arrived | int]:
    """Tokens from an empty state, or from what is kept of it."""
    if request.kept is None:
        return model.stream(request.prompt, request.max_new_tokens)
    if not isinstance(model, Continuing):
        raise Unavailable("its backend cannot keep the KV state between two requests")
    return model.resume(request.prompt, request.kept, request.max_new_tokens)


def _held_anywhere() -> int | None:
    """Anonymous memory, and that which the accelerator holds for this process."""
    held = memory.held_bytes()
    return None if held is None else held + (memory.device_bytes() or 0)
