"""Accepted earlier records of each variant, as files that people review."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from suite.atomic import write_text
from suite.errors import StoreError
from suite.records import SCHEMA_VERSION, BaselineMetric, Baselines, QualityBaseline, SpeedBaseline
from suite.schema import dump, parse
from suite.store import codec, layout

B = TypeVar("B", QualityBaseline, SpeedBaseline)


class BaselineStore:
    """The baselines below one directory. Missing files are None; files that cannot be trusted raise StoreError."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, model: str, variant: str, machine: str) -> Baselines:
        """Everything stored of a variant: its quality, its speed on `machine`, or else its speed on other machines."""
        speed = self.read_speed(model, machine, variant)
        return Baselines(
            quality=self.read_quality(model, variant),
            speed=speed,
            foreign=() if speed else self.read_foreign(model, machine, variant),
        )

    def read_quality(self, model: str, variant: str) -> QualityBaseline | None:
        """The accepted answers of a variant."""
        file = layout.quality_file(self.root, model, variant)
        return _read(QualityBaseline, file, {"model": model, "variant": variant})

    def read_speed(self, model: str, machine: str, variant: str) -> SpeedBaseline | None:
        """The accepted speed of a variant on one machine."""
        file = layout.speed_file(self.root, model, machine, variant)
        return _read(SpeedBaseline, file, {"model": model, "variant": variant, "machine": machine})

    def read_foreign(self, model: str, machine: str, variant: str) -> tuple[SpeedBaseline, ...]:
        """The accepted speeds of a variant on all other machines, by name of the machine."""
        directory = layout.speed_directory(self.root, model)
        if not directory.is_dir():
            return ()
        others = sorted(entry.name for entry in directory.iterdir() if entry.is_dir() and entry.name != machine)
        found = (self.read_speed(model, other, variant) for other in others if not other.startswith("."))
        return tuple(baseline for baseline in found if baseline is not None)

    def file_of(self, baseline: QualityBaseline | SpeedBaseline) -> Path:
        """Where a baseline lies or would lie."""
        if isinstance(baseline, SpeedBaseline):
            return layout.speed_file(self.root, baseline.model, baseline.machine, baseline.variant)
        return layout.quality_file(self.root, baseline.model, baseline.variant)

    def write(self, baseline: QualityBaseline | SpeedBaseline) -> Path:
        """Write a baseline atomically, floats rounded to four significant digits, whole bytes exact; returns the file.

        A file that would not change is not touched. Raises StoreError when it cannot be written.
        """
        file = self.file_of(baseline)
        text = encode(baseline, where=str(file))
        if not (file.is_file() and file.read_bytes() == text.encode("utf-8")):
            write_text(file, text)
        return file


def encode(baseline: QualityBaseline | SpeedBaseline, *, where: str = "baseline") -> str:
    """The text of a baseline file. Raises StoreError naming the key of a number that is not finite."""
    document: codec.Document = dump(baseline)
    del document["edited"]
    for metric in document["metrics"].values():
        metric.update(_exact_bytes(metric["value"], metric["launches"], metric["unit"]))
        if not metric["launches"]:
            del metric["launches"]
    return codec.to_review_text({"schema": SCHEMA_VERSION, "kind": _kind(type(baseline)), **document}, where=where)


def as_stored(metric: BaselineMetric) -> BaselineMetric:
    """The metric as it reads after it was written: whole counts of bytes exact, all else of four significant digits."""
    rounded = codec.round_floats(_exact_bytes(metric.value, metric.launches, metric.unit))
    launches = tuple(float(value) for value in rounded["launches"])
    return dataclasses.replace(metric, value=float(rounded["value"]), launches=launches)


def _exact_bytes(value: float, launches: Iterable[float], unit: str) -> dict[str, Any]:
    """Value and launches as a document; whole numbers of bytes as ints, which are never rounded."""
    if unit != "bytes":
        return {"value": value, "launches": list(launches)}
    return {"value": _as_whole(value), "launches": [_as_whole(launch) for launch in launches]}


def _as_whole(value: float) -> float:
    """An int for a whole number, else the value itself."""
    return int(value) if float(value).is_integer() else value


def _kind(record: type[Any]) -> str:
    return "speed-baseline" if record is SpeedBaseline else "quality-baseline"


def _read(record: type[B], file: Path, place: dict[str, str]) -> B | None:
    if not file.exists():
        return None
    renew = f'pytest --model-matrix --matrix-update=all --matrix-reason "..." --matrix-variants {place["variant"]}'
    document = codec.read_document(file, kind=_kind(record), renew=f"git rm {file} && {renew}")
    edited = document.pop("digest", None) != codec.digest(document)
    del document["schema"], document["kind"]
    if "edited" in document:
        raise StoreError(f"{file}: key 'edited' is never stored; remove it")
    baseline = parse(record, document, where=str(file), error=StoreError)
    for key, expected in place.items():
        if (found := getattr(baseline, key)) != expected:
            raise StoreError(f"{file}: key '{key}' is {found!r}, but the file lies where {expected!r} belongs; move it")
    return dataclasses.replace(baseline, edited=edited)
