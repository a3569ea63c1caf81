"""What a worker does with each request. Runs in the worker process, with standard library and backend only."""

from __future__ import annotations

import math
import platform
import site
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from suite import backends, clock
from suite.backends.base import Arrived, Backend, Forcing, LoadedModel, Prefilled, Remote, Stopping, Telling, Weighing
from suite.errors import LoadError, QuantdriftError, Unavailable, UsageError, VariantInvalid
from suite.worker import memory
from suite.worker.forcing import examine
from suite.worker.messages import (
    Encode,
    Encoded,
    Examined,
    Failed,
    Force,
    Generate,
    Generated,
    Load,
    Loaded,
    Made,
    Make,
    Measure,
    Memory,
    Render,
    Rendered,
    Request,
    Response,
    Weigh,
    Weighed,
)
from suite.worker.witness import Observer


class Server:
    """Holds at most one model."""

    def __init__(self) -> None:
        self._model: LoadedModel | None = None
        self._peak_device: int | None = None

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
        response: Response
        match request:
            case Load():
                response = self._load(request)
            case Render():
                response = Rendered(ids={case: self._loaded.render(chat) for case, chat in request.chats.items()})
            case Encode():
                response = Encoded(ids=self._loaded.encode(request.text))
            case Generate():
                response = self._generate(request)
            case Weigh():
                response = self._weigh(request)
            case Force():
                response = self._force(request)
            case Measure():
                response = self._measure()
            case Make():
                backends.resolve(request.backend).make(request.recipe, Path(request.source), Path(request.destination))
                response = Made()
        return response

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
        return Loaded(
            load_s=clock.monotonic() - imported,
            import_s=imported - begin,
            context_tokens=model.context_tokens,
            threads=model.threads,
            facts=dict(model.facts),
            simulated=model.clock is not clock.monotonic,
            python=platform.python_version(),
            prefixes=[sys.prefix, sys.base_prefix, *site.getsitepackages()],
            libraries={module: _file_of(module) for module in backend.requires},
        )

    def _generate(self, request: Generate) -> Generated:
        model = self._loaded
        telling = model if isinstance(model, Telling) else None
        if telling is not None:
            telling.keep_logprobs = request.logprobs
        if isinstance(model, Stopping):
            model.stop_at_end = request.stop_at_end
        observer = Observer(model.threads, model.process_ids() if isinstance(model, Remote) else ())
        stream = model.stream(request.prompt, request.max_new_tokens)
        is_end: Callable[[int], bool] = model.is_end if request.stop_at_end else _never
        observer.start()
        timed = _time(model.clock, stream, is_end)
        witness = observer.stop(simulated=model.clock is not clock.monotonic)
        self._watch_device()
        return Generated(
            prompt_tokens=len(request.prompt),
            text=model.decode(timed["token_ids"]),
            witness=witness,
            logprobs=_told(telling.logprobs, len(timed["token_ids"])) if telling and request.logprobs else None,
            **timed,
        )

    def _weigh(self, request: Weigh) -> Weighed:
        model = self._loaded
        if not isinstance(model, Weighing):
            return Weighed(logprobs=None)
        return Weighed(logprobs=_finite(model.weigh(request.prompt, request.answer)))

    def _force(self, request: Force) -> Examined:
        model = self._loaded
        if not isinstance(model, Forcing):
            return Examined(width=0, chosen="", best="", best_logprob="", ids="", logprobs="", rest="", broken=[])
        rows = model.force(request.prompt, request.answer, batched=request.batched)
        return examine(rows, request.answer, top=request.top, asked=request.asked)

    def _measure(self) -> Memory:
        self._watch_device()
        model = self._loaded
        cache = model.kv_cache_bytes()
        remote = model if isinstance(model, Remote) else None
        return Memory(
            peak_rss_bytes=memory.peak_rss_of(remote.process_ids()) if remote else memory.peak_rss_bytes(),
            uss_bytes=memory.uss_of(remote.process_ids()) if remote else memory.uss_bytes(),
            peak_device_bytes=self._peak_device,
            kv_cache_bytes=cache[0] if cache else None,
            kv_cache_tokens=cache[1] if cache else None,
            readings=dict(remote.readings()) if remote else {},
        )

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


def _never(_token: int) -> bool:
    return False


def _time(
    now: clock.Clock, stream: Iterator[Prefilled | Arrived | int], is_end: Callable[[int], bool]
) -> dict[str, Any]:
    """Take the time of every item of a stream, unless it brings its own. The end token is neither counted nor timed."""
    tokens: list[int] = []
    times: list[float] = []
    evaluated, prefill_s, finish = 0, 0.0, "length"
    start = now()
    for item in stream:
        elapsed = now() - start
        if isinstance(item, Prefilled):
            if item.started_at is not None:
                start = item.started_at
            evaluated, prefill_s = item.evaluated_tokens, elapsed if item.at is None else item.at - start
            continue
        token = item.token if isinstance(item, Arrived) else item
        if is_end(token):
            finish = "stop"
            break
        tokens.append(token)
        if isinstance(item, Arrived):
            elapsed = item.at - start
        times.append(elapsed)
    return {
        "token_ids": tokens,
        "token_times_s": times,
        "evaluated_tokens": evaluated,
        "prefill_s": prefill_s,
        "finish_reason": finish,
    }
