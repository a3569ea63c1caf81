"""The hub behind a small seam: which files a repository holds, and fetching some of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from suite.errors import Unavailable

_DEFAULT_BRANCH = "main"
_OF_ONE_TRY = re.compile(r" ?\(Request ID: [^)]*\)| object at 0x[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A hub repository at one commit."""

    name: str
    """``org/name``."""
    commit: str
    files: tuple[str, ...]
    """Paths inside the repository, with ``/``."""
    revision: str | None = None
    """As it was asked for."""
    is_whole: bool = True
    """False: the hub could not be asked, and `files` is what earlier downloads left here."""


class Hub(Protocol):
    """Anything that can list and fetch. Both raise Unavailable, saying what to do, for what cannot be had."""

    def find(self, repo: str, revision: str | None) -> Repository:
        """The repository at `revision` (branch, tag, commit; None is the default branch), commit resolved."""
        ...

    def fetch(self, repository: Repository, files: Sequence[str]) -> Path:
        """Bring `files` onto this disk; the directory below which they lie under their own paths."""
        ...


class HuggingFaceHub:
    """The hub through ``huggingface_hub``: its cache, its token, ``HF_HUB_OFFLINE`` and ``HF_ENDPOINT`` hold.

    Offline, or when the hub cannot be reached, what an earlier download left in the cache is used.
    """

    def __init__(self, *, cache: Path | None = None, endpoint: str | None = None) -> None:
        self._cache = cache
        self._endpoint = endpoint

    def find(self, repo: str, revision: str | None) -> Repository:
        """List `repo` at `revision`; from the local cache when the hub cannot be asked. Raises Unavailable."""
        hub = _import_hub()
        try:
            info = hub.HfApi(endpoint=self._endpoint).model_info(repo, revision=revision)
        except _failures(hub) as problem:
            reason = _explain(hub, problem, repo, revision)
            cached = self._find_cached(hub, repo, revision) if _is_unreachable(hub, problem) else None
            if cached is None:
                raise Unavailable(reason) from problem
            return cached
        files = tuple(sorted(sibling.rfilename for sibling in info.siblings or ()))
        return Repository(name=repo, commit=str(info.sha), files=files, revision=revision)

    def fetch(self, repository: Repository, files: Sequence[str]) -> Path:
        """Download what is not yet in the cache; the snapshot's directory. Raises Unavailable."""
        hub = _import_hub()
        if not files:
            raise Unavailable(f"hub repository '{repository.name}' has no file that is needed")
        paths = [self._download(hub, repository, name, repository.commit) for name in files]
        if repository.is_whole:  # leaves a note of which commit the branch or tag was, so that offline runs find it
            self._download(hub, repository, files[0], repository.revision or _DEFAULT_BRANCH)
        return paths[0].parents[files[0].count("/")]

    def _download(self, hub: Any, repository: Repository, name: str, revision: str) -> Path:
        try:
            path = hub.hf_hub_download(
                repository.name, name, revision=revision, cache_dir=self._cache, endpoint=self._endpoint
            )
        except _failures(hub) as problem:
            reason = _explain(hub, problem, repository.name, revision)
            raise Unavailable(f"{name} of {reason}") from problem
        return Path(path)

    def _find_cached(self, hub: Any, repo: str, revision: str | None) -> Repository | None:
        try:
            cache = hub.scan_cache_dir(self._cache)
        except hub.errors.CacheNotFound:
            return None
        wanted = revision or _DEFAULT_BRANCH
        for cached in cache.repos:
            if cached.repo_type != "model" or cached.repo_id != repo:
                continue
            for kept in cached.revisions:
                if kept.commit_hash == wanted or wanted in kept.refs:
                    names = (file.file_path.relative_to(kept.snapshot_path).as_posix() for file in kept.files)
                    files = tuple(sorted(names))
                    return Repository(
                        name=repo, commit=kept.commit_hash, files=files, revision=revision, is_whole=False
                    )
        return None


def _import_hub() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError as missing:
        raise Unavailable(
            "a hub repository needs huggingface_hub: pip install huggingface_hub, or name a local file"
        ) from missing
    return huggingface_hub


def _failures(hub: Any) -> tuple[type[Exception], ...]:
    """What asking the hub or downloading raises: refused, not there, not reachable, disk full."""
    errors = hub.errors
    return (errors.HTTPError, errors.HFValidationError, errors.EntryNotFoundError, OSError)


def _is_unreachable(hub: Any, problem: Exception) -> bool:
    """Whether the hub did not answer, so that the cache may speak for it. A refusal is an answer."""
    errors = hub.errors
    refused = (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError)
    return not isinstance(problem, refused)


def _explain(hub: Any, problem: Exception, repo: str, revision: str | None) -> str:
    """What cannot be had, why, and what to do."""
    errors = hub.errors
    what = f"hub repository '{repo}'" + (f" at '{revision}'" if revision else "")
    match problem:
        case errors.GatedRepoError():
            return f"{what} is gated: accept its terms on its page, then log in with `hf auth login`"
        case errors.RepositoryNotFoundError():
            return (
                f"{what} was not found: check the spelling, or log in with `hf auth login` if it is private "
                "(a directory must exist, or be written ./like/this)"
            )
        case errors.RevisionNotFoundError():
            return f"{what}: the repository exists, that revision does not; name a branch, a tag or a full commit"
        case errors.OfflineModeIsEnabled():
            return f"{what} is not in the local cache and HF_HUB_OFFLINE is set; unset it once to download it"
        case _:
            return f"{what} cannot be fetched, and is not in the local cache ({_first_line(problem)})"


def _first_line(problem: Exception) -> str:
    """What it says, without what differs from one try to the next."""
    lines = _OF_ONE_TRY.sub("", str(problem)).strip().splitlines()
    return f"{type(problem).__name__}: {lines[0]}" if lines else type(problem).__name__
