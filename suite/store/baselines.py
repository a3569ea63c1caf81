"""Accepted earlier records of each variant, as files that people review."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from suite.atomic import write_text
from suite.errors import StoreError
from suite.records import SCHEMA_VERSION, BaselineMetric, Baselines, Noise, QualityBaseline, SpeedBaseline
from suite.schema import dump, parse
from suite.store import codec, layout

B = TypeVar("B", QualityBaseline, SpeedBaseline, Noise)

_KINDS: dict[type[Any], str] = {
    SpeedBaseline: "speed-baseline",
    QualityBaseline: "quality-baseline",
    Noise: "noise",
}


class BaselineStore:
    """The baselines below one directory. Missing files are None; files that cannot be trusted raise StoreError."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, model: str, variant: str, machine: str) -> Baselines:
        """Everything stored of a variant: its quality, its speed on `machine` (or else on other machines), the first
        ones that were accepted, and the noise of `machine`.
        """
        speed = self.read_speed(model, machine, variant)
        return Baselines(
            quality=self.read_quality(model, variant),
            speed=speed,
            foreign=() if speed else self.read_foreign(model, machine, variant),
            frozen_quality=self.read_quality(model, variant, frozen=True),
            frozen_speed=self.read_speed(model, machine, variant, frozen=True),
            noise=self.read_noise(model, machine),
        )

    def read_quality(self, model: str, variant: str, *, frozen: bool = False) -> QualityBaseline | None:
        """The accepted answers of a variant: the latest, or the first."""
        file = layout.quality_file(self.root, model, variant)
        return _read_baseline(QualityBaseline, file, {"model": model, "variant": variant}, frozen)

    def read_speed(self, model: str, machine: str, variant: str, *, frozen: bool = False) -> SpeedBaseline | None:
        """The accepted speed of a variant on one machine: the latest, or the first."""
        file = layout.speed_file(self.root, model, machine, variant)
        return _read_baseline(SpeedBaseline, file, {"model": model, "variant": variant, "machine": machine}, frozen)

    def read_noise(self, model: str, machine: str) -> Noise | None:
        """What was found about the noise of one machine."""
        file = layout.noise_file(self.root, model, machine)
        return _read(Noise, file, {"model": model, "machine": machine})

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

    def write(self, baseline: QualityBaseline | SpeedBaseline, *, anew: bool = False) -> Path:
        """Write a baseline atomically, floats rounded to four significant digits, whole bytes exact; returns the file.

        Beside it the first one is kept, frozen: this one, or the one that it replaces when none was kept so far (to the
        letter, so that an edit stays visible). `anew` is a deliberate new start: if its content is another one than that of
        the one that it replaces, this one is kept as the first. So it is when it answers another question than the first
        one, which nothing could be held against any more. A file that would not change is not touched. Raises StoreError
        when one cannot be written, or when what lies there cannot be read.
        """
        file = self.file_of(baseline)
        text = encode(baseline, where=str(file))
        replaced = _read_text(file)
        frozen = layout.frozen_file(file)
        first, latest = self._read_like(baseline, frozen=True), self._read_like(baseline, frozen=False)
        if (anew and _says_otherwise(baseline, latest)) or _asks_otherwise(baseline, first or latest):
            _write_changed(frozen, text)
        elif replaced != text and not frozen.exists():
            write_text(frozen, text if replaced is None else replaced)
        _write_changed(file, text)
        return file

    def _read_like(
        self, baseline: QualityBaseline | SpeedBaseline, *, frozen: bool
    ) -> QualityBaseline | SpeedBaseline | None:
        """What is stored of the same kind, variant and machine: the latest, or the first."""
        if isinstance(baseline, SpeedBaseline):
            return self.read_speed(baseline.model, baseline.machine, baseline.variant, frozen=frozen)
        return self.read_quality(baseline.model, baseline.variant, frozen=frozen)

    def write_noise(self, noise: Noise) -> Path:
        """Write what was found about a machine's noise, as `write` does; returns the file."""
        file = layout.noise_file(self.root, noise.model, noise.machine)
        document: codec.Document = dump(noise)
        del document["edited"]
        heading = {"schema": SCHEMA_VERSION, "kind": _KINDS[Noise]}
        _write_changed(file, codec.to_review_text({**heading, **document}, where=str(file)))
        return file


def encode(baseline: QualityBaseline | SpeedBaseline, *, where: str = "baseline") -> str:
    """The text of a baseline file. Raises StoreError naming the key of a number that is not finite."""
    document: codec.Document = dump(baseline)
    del document["edited"]
    for name in ("flags", "gates"):  # said only where there is something to say
        if not document["provenance"][name]:
            del document["provenance"][name]
    for case in document.get("cases", {}).values():
        if case["fidelity"] is not None:
            case["fidelity"] = {name: value for name, value in case["fidelity"].items() if value is not None}
        for name in ("output_ids", "logprob", "fidelity"):  # of backends that know
            if case[name] is None:
                del case[name]
    for metric in document["metrics"].values():
        metric.update(_exact_bytes(metric["value"], metric["launches"], metric["unit"]))
        if not metric["launches"]:
            del metric["launches"]
    return codec.to_review_text({"schema": SCHEMA_VERSION, "kind": _KINDS[type(baseline)], **document}, where=where)


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


def _says_otherwise(baseline: QualityBaseline | SpeedBaseline, stored: QualityBaseline | SpeedBaseline | None) -> bool:
    """Whether the content is another one, as it is written; when and why it was accepted, and by which versions, is none."""
    return stored is None or _content_of(baseline) != _content_of(stored)


def _content_of(baseline: QualityBaseline | SpeedBaseline) -> codec.Document:
    document = codec.from_json(encode(baseline), where="baseline")
    return {key: value for key, value in document.items() if key not in ("provenance", "suspects", "digest")}


def _asks_otherwise(baseline: QualityBaseline | SpeedBaseline, stored: QualityBaseline | SpeedBaseline | None) -> bool:
    return stored is not None and dict(stored.identity) != dict(baseline.identity)


def _read_text(file: Path) -> str | None:
    """What a file holds, None when there is none. Raises StoreError when it is no text."""
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{file}: cannot be read: {error}") from error


def _write_changed(file: Path, text: str) -> None:
    if _read_text(file) != text:
        write_text(file, text)


def _read_baseline(record: type[B], file: Path, place: dict[str, str], frozen: bool) -> B | None:
    return _read(record, layout.frozen_file(file) if frozen else file, place)


def _read(record: type[B], file: Path, place: Mapping[str, str]) -> B | None:
    """The record in a file of people's review, None when there is none; see `decode`."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error}") from error
    return decode(record, data, where=str(file), place=place)


def decode(record: type[B], data: bytes, *, where: str, place: Mapping[str, str]) -> B:
    """The record in the bytes of a file of people's review. `place` is what the place where it lies says about it.

    Raises StoreError naming `where` and what to do.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StoreError(f"{where}: cannot be read: {error}") from None
    document = codec.open_document(text, kind=_KINDS[record], where=where, renew=f"git rm {where} && {_renew(place)}")
    edited = document.pop("digest", None) != codec.digest(document)
    del document["schema"], document["kind"]
    if "edited" in document:
        raise StoreError(f"{where}: key 'edited' is never stored; remove it")
    found = parse(record, document, where=where, error=StoreError)
    for key, expected in place.items():
        if (said := getattr(found, key)) != expected:
            raise StoreError(f"{where}: key '{key}' is {said!r}, but the file lies where {expected!r} belongs; move it")
    return dataclasses.replace(found, edited=edited)


def _renew(place: Mapping[str, str]) -> str:
    """The command that makes such a file anew."""
    if "variant" not in place:
        return "quantdrift calibrate"
    return f'pytest --model-matrix --matrix-update=all --matrix-reason "..." --matrix-variants {place["variant"]}'
