"""Variants of the scripted model without processes: what the engine does with them, and nothing else, is under test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from suite.engine.launching import Launcher, LiveVariant, options_in_force
from suite.engine.preparing import Prepared, Preparer
from suite.engine.progress import silent
from suite.errors import LoadError, Unavailable, UsageError, VariantError, WorkerDied
from suite.records import Case, Deadlines, Matrix, Protocol, Scenario, ScorerSpec, Variant
from suite.worker.messages import Failed, Generate, Load, Request
from suite.worker.process import Worker
from suite.worker.serve import Server

KINDS = {"load": LoadError, "unavailable": Unavailable, "usage": UsageError, "failure": VariantError}


class InProcessWorker:
    """A server behind the face of a `Worker`. `dies_at`: the generation in which its process would be gone."""

    alive = True

    def __init__(self, name: str, events: list[str], dies_at: int | None = None) -> None:
        self.name = name
        self._events = events
        self._server = Server()
        self._left = dies_at

    def ask(self, request: Request, deadline_s: float) -> Any:
        if isinstance(request, Generate):
            if self._left == 0:
                raise WorkerDied(f"worker of {self.name} was killed by SIGKILL")
            self._left = None if self._left is None else self._left - 1
            after = f" after {request.kept}" if request.kept is not None else ""
            self._events.append(f"{self.name}:{len(request.prompt)}+{request.max_new_tokens}{after}")
        answer = self._server.answer(request)
        if isinstance(answer, Failed):
            raise KINDS[answer.kind](answer.message)
        return answer


@dataclass(frozen=True, kw_only=True)
class InProcessLauncher(Launcher):
    """Launches variants in this process and writes down in which order things happen."""

    preparer: Preparer = field(default_factory=lambda: make_preparer(Path()))
    deadlines: Deadlines = field(default_factory=Deadlines)
    logs: Path = Path()
    progress: Any = silent
    events: list[str] = field(default_factory=list)
    deaths: dict[str, int] = field(default_factory=dict)
    """Variant → the generation of each launch in which its process dies."""

    @contextmanager
    def launch(self, variant: Variant, index: int = 0) -> Iterator[LiveVariant]:
        self.events.append(f"{variant.name}:launch {index}")
        worker = InProcessWorker(variant.name, self.events, self.deaths.get(variant.name))
        request = Load(backend="fake", weights=None, options=options_in_force(variant), prompt_format="chat")
        loaded = worker.ask(request, 1.0)
        yield LiveVariant(
            variant=variant,
            prepared=Prepared(weights=None, artifact=None),
            worker=cast("Worker", worker),
            loaded=loaded,
            deadlines=self.deadlines,
        )
        self.events.append(f"{variant.name}:end {index}")


def make_preparer(base: Path, cache: Path | None = None) -> Preparer:
    """Nothing is written unless a variant has weights."""
    return Preparer(base=base, cache=cache or base / "cache", deadlines=Deadlines(), progress=silent)


def make_variant(name: str, **options: Any) -> Variant:
    return Variant(name=name, model="toy", backend="fake", source="org/toy", options=options)


def make_matrix(*variants: Variant, **protocol: Any) -> Matrix:
    usual = {"launches": 2, "rounds": 2, "warmup": 0, "retries": 0, "resident": "all"}
    return Matrix(
        model="toy",
        variants=variants,
        scenarios=(
            Scenario(name="short", prompt_tokens=8, new_tokens=4),
            Scenario(name="long", prompt_tokens=40, new_tokens=3),
        ),
        protocol=Protocol(**{**usual, **protocol}),
        policy={},
        deadlines=Deadlines(),
        file="matrix.toml",
    )


def make_case(case: str, *, target: str = "18", version: int = 1, max_new_tokens: int = 40) -> Case:
    return Case(
        id=case, domain=case.partition("/")[0], version=version, prompt=f"How many {case}?", target=target,
        scorer=ScorerSpec(name="number"), max_new_tokens=max_new_tokens,
    )  # fmt: skip
