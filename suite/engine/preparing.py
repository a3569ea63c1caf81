"""From where a variant's weights are said to be, to a local file that its backend can load, and what is in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from suite import backends
from suite.backends.base import Backend, Sparing
from suite.engine.progress import Progress
from suite.errors import MatrixFileError, VariantError
from suite.models.anatomy import Anatomy, read_anatomy
from suite.models.attention import kv_shape
from suite.models.cache import Cache
from suite.models.hashes import HashCache
from suite.models.inspect import inspect_files
from suite.models.kv import kv_cache_bytes
from suite.models.sources import Located, locate, parse_source
from suite.models.tokenizer import tokenizer_facts
from suite.records import Artifact, Deadlines, Variant
from suite.worker.messages import Make
from suite.worker.process import Worker

DEQUANTIZED = "dequantized"
UNQUANTIZED = frozenset({"F32", "F16", "BF16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Weights on this disk in the format of the variant's backend."""

    weights: Path | None
    """A GGUF file or a directory of safetensors; None for a backend without weights."""
    artifact: Artifact | None
    tokenizer: Mapping[str, str] = field(default_factory=dict)
    """Hashes of template and tokenizer."""
    paths: tuple[Path, ...] = ()
    anatomy: Anatomy | None = None
    """Which of the weights a token reads; None where the headers do not tell."""

    def kv_cache_bytes(self, tokens: int, type_k: str, type_v: str) -> int | None:
        """Computed bytes of the KV cache of `tokens` tokens; None when the files do not tell the shape."""
        shape = kv_shape(self.paths)
        return None if shape is None else kv_cache_bytes(shape, n_ctx=tokens, type_k=type_k, type_v=type_v)


class Preparer:
    """Prepares variants, each once; what has to be made is made in a worker and kept in the user's cache."""

    def __init__(self, *, base: Path, cache: Path, deadlines: Deadlines, progress: Progress) -> None:
        self._base = base
        self._cache_root = cache
        self._cache = Cache(cache / "weights", say=progress)
        self._hashes = HashCache(cache / "hashes")
        self._deadlines = deadlines
        self._progress = progress
        self._known: dict[tuple[str, str, str | None], Prepared] = {}

    def prepare(self, variant: Variant) -> Prepared:
        """The weights of `variant`.

        Raises Unavailable when they cannot be had, MatrixFileError when they are not what the variant needs, VariantError
        when the disk refuses to give or to take them.
        """
        if not _needs_weights(variant):
            return Prepared(weights=None, artifact=None)
        key = (variant.source, variant.backend, variant.make)
        if key not in self._known:
            try:
                self._known[key] = self._prepare(variant)
            except OSError as error:
                raise VariantError(
                    f"variants.{variant.name}: its weights ({variant.source}) could not be prepared: {error}; "
                    f"the cache is {self._cache_root} (QUANTDRIFT_CACHE names another one)"
                ) from error
        return self._known[key]

    def _prepare(self, variant: Variant) -> Prepared:
        backend = backends.resolve(variant.backend)
        located = locate(
            parse_source(variant.source, base=self._base), base=self._base, where=f"variants.{variant.name}"
        )
        if backend.weights_format == "gguf" or (backend.weights_format == "any" and located.is_gguf):
            return self._prepare_gguf(variant, backend, located)
        return self._prepare_safetensors(variant, backend, located)

    def _prepare_gguf(self, variant: Variant, backend: Backend, located: Located) -> Prepared:
        if not located.is_gguf:
            raise MatrixFileError(
                f"variants.{variant.name}: {located.description} holds safetensors, and GGUF files are not made from those "
                "here; convert it once with llama.cpp's convert_hf_to_gguf.py and name the file as source"
            )
        if variant.make is None:
            return self._inspect(located.files, variant.quantization, located, None)
        source, derived = located.files[0], located.description
        if variant.make != "F16" and not self._is_unquantized(located):
            source, derived = self._make(variant, backend, "F16", source), f"F16 made from {located.description}"
        made = self._make(variant, backend, variant.make, source)
        return self._inspect((made,), variant.make, located, f"{variant.make} made from {derived}")

    def _prepare_safetensors(self, variant: Variant, backend: Backend, located: Located) -> Prepared:
        if not located.is_gguf:
            return self._inspect(located.files, None, located, None)
        made = self._make(variant, backend, DEQUANTIZED, located.files[0])
        files = tuple(sorted(made.glob("*.safetensors")))
        return self._inspect(files, None, located, f"dequantized to FP16 from {located.description}")

    def _is_unquantized(self, located: Located) -> bool:
        artifact = self._inspect(located.files, None, located, None).artifact
        return artifact is not None and bool(artifact.tensor_types) and set(artifact.tensor_types) <= UNQUANTIZED

    def _inspect(
        self, files: tuple[Path, ...], label: str | None, located: Located, derived_from: str | None
    ) -> Prepared:
        artifact = inspect_files(
            files, label=label, revision=located.revision, derived_from=derived_from, known_hashes=self._hashes
        )
        weights = files[0] if files[0].suffix.lower() == ".gguf" else files[0].parent
        return Prepared(
            weights=weights,
            artifact=artifact,
            tokenizer=tokenizer_facts(files),
            paths=files,
            anatomy=read_anatomy(files),
        )

    def _make(self, variant: Variant, backend: Backend, recipe: str, source: Path) -> Path:
        def run(destination: Path) -> None:
            self._progress(f"making {recipe} from {source.name} (once; kept in the cache)")
            request = Make(backend=variant.backend, recipe=recipe, source=str(source), destination=str(destination))
            try:
                with Worker(f"{variant.name} (making {recipe})") as worker:
                    worker.ask(request, self._deadlines.make_s)
            except VariantError as fault:
                reason, *detail = str(fault).splitlines()
                free = shutil.disk_usage(destination.parent).free / 1e6
                where = f"it was made in {self._cache_root}, where {free:.0f} MB are free; QUANTDRIFT_CACHE names another place"
                raise VariantError("\n".join([f"{reason} ({where})", *detail])) from fault

        suffix = "" if backend.weights_format == "safetensors" else f".{recipe}.gguf"
        key = {"recipe": recipe, "source sha256": self._hashes.sha256(source), **_makers(backend)}
        return self._cache.fetch_or_make(key, suffix, run)


def _needs_weights(variant: Variant) -> bool:
    """Whether the variant is of weights on this disk: some backends have none, and a server may have its own."""
    backend = backends.resolve(variant.backend)
    if isinstance(backend, Sparing):
        return backend.needs_weights(variant.options)
    return backend.weights_format != "none"


def _makers(backend: Backend) -> dict[str, str]:
    """Versions of the libraries that make weights: another version may make other bytes."""
    versions = {}
    for module in backend.makers:
        name = backends.PACKAGES.get(module, module)
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
