"""What a worker finds around it: environment variables, and the places that it imports from."""

from __future__ import annotations

import os
import re
import shutil
import site
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import suite
from suite.backends.base import LAUNCH_VARIABLE
from suite.worker.affinity import CPUS_VARIABLE

PASSED_ON = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TERM|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|HF_HOME|HF_HUB_CACHE|SYSTEMROOT)"
    r"|(LC_|LD_|DYLD_|XDG_|PYTHON|OMP_|GOMP_|KMP_|MKL_|OPENBLAS_|BLIS_|NUMEXPR_|TORCH|PYTORCH_|TRITON_|BNB_|GGML_|LLAMA_"
    r"|CUDA_|NVIDIA_|NCCL_|HIP_|HSA_|ROCR_|ROCM_|ONEAPI_|SYCL_|ZE_|VK_|MTL_|COV|QUANTDRIFT_).*"
)
"""Environment variables that a worker gets: what finds programs and libraries, and what steers how they compute."""
OF_OUR_PYTHON = re.compile(
    r"VIRTUAL_ENV|PYTHON(HOME|PLATLIBDIR|USERBASE|STARTUP|EXECUTABLE|PYCACHEPREFIX)|LD_LIBRARY_PATH|DYLD_.*PATH"
)
"""Variables that would lead another interpreter to what is installed beside ours."""
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Directories of these names hold what was installed, of whichever interpreter."""


def environment_of(
    launch: int, cpus: Sequence[int] = (), python: str | None = None, passing: Sequence[str] = ()
) -> dict[str, str]:
    """What of the parent's environment a worker needs. Weights are untrusted input: nothing else goes along.

    `passing` names what this one worker needs besides, e.g. the variable that holds the key of its server.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in passing or (PASSED_ON.fullmatch(name) and not (python and OF_OUR_PYTHON.fullmatch(name)))
    }
    places = [str(stage()), *own_places()] if python else import_paths(package_root())
    inherited.pop(CPUS_VARIABLE, None)
    return {
        **inherited,
        **({CPUS_VARIABLE: ",".join(map(str, cpus))} if cpus else {}),
        "PYTHONPATH": os.pathsep.join(places),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TQDM_DISABLE": "1",  # progress bars would crowd out the lines that say why something failed
        "GGML_NO_BACKTRACE": "1",
        LAUNCH_VARIABLE: str(launch),
    }


def package_root() -> Path:
    """The directory that holds this package."""
    return Path(next(iter(suite.__path__))).resolve().parent


def import_paths(first: Path) -> list[str]:
    """`first`, and where a person's own backends lie; what comes with the parent's interpreter is left out."""
    comes_along = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found = [path.resolve() for path in (*map(Path, sys.path), Path.cwd()) if path.is_dir()]
    kept = [path for path in found if not comes_along & {path, *path.parents}]
    return list(dict.fromkeys(map(str, [first, *kept])))


def own_places() -> list[str]:
    """Where a person's own backends lie, for another interpreter: in the project, and nowhere that anything is installed.

    The project is the directory that pytest was started in, or the one around it that pytest put first among ours. What
    was installed beside our interpreter would be measured instead of what the other one has.
    """
    here = Path.cwd().resolve()
    given = {Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    found = list(dict.fromkeys([*(Path(entry).resolve() for entry in sys.path if entry), here]))
    projects = [here, *(path for path in found if path in here.parents and path not in given and path != path.parent)]
    library = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    installed = {Path(path).resolve() for path in (*library, *site.getsitepackages(), site.getusersitepackages())}
    return [
        str(path)
        for path in found
        if path.is_dir() and not INSTALLED & set(path.parts) and not installed & {path, *path.parents}
        if any(path.is_relative_to(project) for project in projects)
    ]


def stage() -> Path:
    """A directory that holds this package and nothing else, for interpreters that must not see what we have installed."""
    return Path(_stage().name)


@cache
def _stage() -> tempfile.TemporaryDirectory[str]:
    """Made once; removed when this process ends."""
    directory = tempfile.TemporaryDirectory(prefix="quantdrift-")
    source = Path(next(iter(suite.__path__)))
    shutil.copytree(source, Path(directory.name) / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return directory
