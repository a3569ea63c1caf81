"""KL divergence over the whole vocabulary, computed another way than the suite does, beside what a run says.

    .venv/bin/python benchmarks/full_kld.py .quantdrift/latest/run.json

Nothing of the suite computes anything here: the reference runs through transformers, GGUF files through llama-cpp-python's
own high-level evaluation with all logits kept, the divergence is summed over every token of the vocabulary in double
precision, along the answers of the stored trace, which is read with numpy. The suite is only asked where the weights lie.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

from suite.engine.preparing import Preparer
from suite.engine.progress import silent
from suite.records import Deadlines
from suite.settings import find_cache
from suite.store.runs import read_run

Answer = tuple[list[int], list[int]]
"""Token ids of a prompt, and of the reference's answer to it."""


def main() -> None:
    """Compute, and print a line for each variant."""
    options = _parse()
    run = read_run(options.run)
    answers = dict(read_answers(options.trace or Path("baselines") / run.model / "trace.npz"))
    preparer = Preparer(base=Path.cwd(), cache=find_cache(os.environ), deadlines=Deadlines(), progress=silent)
    reference = next(result.variant for result in run.variants if result.variant.reference)
    weights = {result.variant.name: preparer.prepare(result.variant).weights for result in run.variants}
    base = {case: list(logits) for case, logits in by_transformers(weights[reference.name], answers)}
    print(f"{len(answers)} answers, {sum(len(answer) for _, answer in answers.values())} positions, whole vocabulary")
    print(f"{'variant':12} {'full':>10} {'as told':>10} {'told/full':>9}")
    for result in run.variants:
        name = result.variant.name
        told = next((m.value for m in result.measurements if (m.metric, m.scope) == ("mean_kld", "all")), None)
        if result.variant.backend != "llama_cpp" or told is None:
            continue
        full = _mean(base, by_llama_cpp(weights[name], answers))
        print(f"{name:12} {full:10.6f} {told:10.6f} {told / full:9.3f}" if full else f"{name:12} {full:10.6f}")


def read_answers(file: Path) -> Iterator[tuple[str, Answer]]:
    """Prompts and answers of a trace."""
    with numpy.load(file) as stored:
        header = json.loads(stored["header"].tobytes())
        prompts, answers = stored["prompt_ids"].tolist(), stored["answer_ids"].tolist()
    for case in header["cases"]:
        at, to = case["prompt_tokens"], case["answer_tokens"]
        yield case["case"], (prompts[:at], answers[:to])
        prompts, answers = prompts[at:], answers[to:]


def by_transformers(weights: Path | None, answers: dict[str, Answer]) -> Iterator[tuple[str, Any]]:
    """Log-probabilities, (positions, vocabulary), of the reference: one forward pass over prompt and answer."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(weights, dtype="auto").eval()
    for case, (prompt, answer) in answers.items():
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + answer[:-1]])).logits[0, len(prompt) - 1 :]
        yield case, torch.log_softmax(logits.double(), dim=-1).numpy()


def by_llama_cpp(weights: Path | None, answers: dict[str, Answer]) -> Iterator[tuple[str, Any]]:
    """The same of a GGUF file."""
    from llama_cpp import Llama

    llama = Llama(str(weights), n_ctx=1024, logits_all=True, verbose=False, n_threads=os.cpu_count())
    for case, (prompt, answer) in answers.items():
        llama.reset()
        llama.eval(prompt + answer[:-1])
        logits = numpy.array(llama.scores[len(prompt) - 1 : len(prompt) + len(answer) - 1], numpy.float64)
        logits -= logits.max(axis=1, keepdims=True)
        yield case, logits - numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
    llama.close()


def _mean(base: dict[str, Any], other: Iterator[tuple[str, Any]]) -> float:
    found = [
        float((numpy.exp(p) * (p - q)).sum()) for case, rows in other for p, q in zip(base[case], rows, strict=True)
    ]
    return float(numpy.mean(found))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run.json of a run of the default matrix")
    parser.add_argument("--trace", type=Path, help="trace.npz; that of the run's model below baselines/ unless given")
    return parser.parse_args()


if __name__ == "__main__":
    main()
