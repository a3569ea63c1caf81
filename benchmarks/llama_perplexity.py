"""Our mean KL divergence beside that of llama.cpp's own ``llama-perplexity --kl-divergence``, of the same files.

    .venv/bin/python benchmarks/llama_perplexity.py .quantdrift/latest/run.json

llama-perplexity scores the second half of each chunk of running text; so the prompts and the reference's answers are written
one after the other, and scored in chunks of 256 tokens, against the F16 file. Ours is the quantization leg: the divergence from
the same F16 file along the reference's answers alone. Order and size are to agree; the positions are others.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path
from statistics import fmean

from llama_cpp_tools import build_tool

from suite.cases import load_cases
from suite.engine.preparing import Preparer
from suite.engine.progress import silent
from suite.records import Deadlines, Run
from suite.scorers import check_case
from suite.settings import find_cache
from suite.store.runs import read_run

CHUNK = 256


def main() -> None:
    """Score, and print a line for each GGUF variant."""
    options = _parse()
    run, cache = read_run(options.run), find_cache(os.environ)
    tool = build_tool(cache / "benchmarks", "llama-perplexity")
    preparer = Preparer(base=Path.cwd(), cache=cache, deadlines=Deadlines(), progress=silent)
    files = {
        r.variant.name: preparer.prepare(r.variant).weights for r in run.variants if r.variant.backend == "llama_cpp"
    }
    base = next(name for name in files if name == options.base)
    ours = {name: quantization_leg(run, name) for name in files}
    with tempfile.TemporaryDirectory() as directory:
        text, logits = Path(directory) / "text.txt", Path(directory) / "base.kld"
        text.write_text(running_text(run, options.cases))
        score(tool, files[base], text, logits, fresh=True)
        print(f"{'variant':10} {'llama-perplexity':>24} {'ours':>10} {'ours/theirs':>11}")
        for name, file in files.items():
            mean, error = read_kld(score(tool, file, text, logits, fresh=False))
            told = ours.get(name)
            ratio = f"{told / mean:11.2f}" if told and mean > 0 else ""
            print(f"{name:10} {mean:12.6f} ± {error:9.6f} {told or 0.0:10.6f} {ratio}", flush=True)


def quantization_leg(run: Run, variant: str) -> float | None:
    """Mean divergence from the unquantized variant of the same engine, over all positions; None where there is none."""
    found = [value for one in run.forced if one.variant == variant for value in one.peer_kld or ()]
    return fmean(found) if found else None


def running_text(run: Run, cases: Path) -> str:
    """Prompts and the reference's answers, one after the other."""
    prompts = {case.id: case.prompt for case in load_cases(cases, check=check_case)}
    reference = next(r.variant.name for r in run.variants if r.variant.reference)
    answers = [t for t in run.trials if t.variant == reference and t.generation is not None and t.case in prompts]
    return "\n\n".join(f"{prompts[t.case]}\n{t.generation.text}" for t in answers if t.generation)


def score(tool: Path, model: Path | None, text: Path, logits: Path, *, fresh: bool) -> str:
    """What the tool prints; with `fresh` it writes the base's logits."""
    command = [
        str(tool),
        "-m",
        str(model),
        "-f",
        str(text),
        "-c",
        str(CHUNK),
        "-b",
        str(CHUNK),
        "--kl-divergence-base",
        str(logits),
    ]
    done = subprocess.run(
        command if fresh else [*command, "--kl-divergence"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    return done.stdout + done.stderr


def read_kld(printed: str) -> tuple[float, float]:
    """Mean and its error as printed."""
    found = re.search(r"Mean\s+KLD:\s+(-?[\d.]+)\s+±\s+([\d.]+)", printed)
    if found is None:
        raise SystemExit(f"no mean KLD in what llama-perplexity printed:\n{printed[-2000:]}")
    return float(found[1]), float(found[2])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run.json of a run of the default matrix, with fidelity")
    parser.add_argument("--base", default="f16", help="the variant that stands for the unquantized weights")
    parser.add_argument("--cases", type=Path, default=Path("cases"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
