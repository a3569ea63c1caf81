"""llama.cpp's own tools, built from the very source that the installed llama-cpp-python was built from."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path


def build_tool(cache: Path, tool: str) -> Path:
    """``llama-bench``, ``llama-perplexity`` … of the installed version, with the Makefile's CMake arguments; built once."""
    release = version("llama-cpp-python")
    arguments = os.environ.get("CMAKE_ARGS", "-DCMAKE_C_FLAGS=-U__AMX_INT8__ -DCMAKE_CXX_FLAGS=-U__AMX_INT8__")
    place = cache / f"llama.cpp-{release}"
    build = place / "build"
    if not (build / "bin" / tool).exists():
        print(f"building {tool} in {place} (minutes, once)", flush=True)
        source = _find_source(place, release)
        configure = ["cmake", "-S", str(source), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_CURL=OFF"]
        subprocess.run([*configure, *shlex.split(arguments)], check=True, stdout=subprocess.DEVNULL)
        make = ["cmake", "--build", str(build), "--target", tool, "-j", str(os.cpu_count())]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    return build / "bin" / tool


def _find_source(place: Path, release: str) -> Path:
    """The source distribution, fetched and unpacked once."""
    place.mkdir(parents=True, exist_ok=True)
    if not list(place.glob("llama_cpp_python-*/vendor/llama.cpp")):
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-python"]
        subprocess.run([*download, "--dest", str(place), f"llama-cpp-python=={release}"], check=True)
        with tarfile.open(next(place.glob("llama_cpp_python-*.tar.gz"))) as archive:
            archive.extractall(place, filter="data")
    return next(place.glob("llama_cpp_python-*/vendor/llama.cpp"))
