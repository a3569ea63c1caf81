"""Safetensors models through transformers: the unquantized reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from suite.backends.base import DeviceRates, Message, Prefilled, check_kept, check_room, cut_answer, frozen_strftime
from suite.backends.torch_rates import measure_device
from suite.clock import monotonic
from suite.errors import LoadError, Unavailable

Attention = Literal["auto", "eager", "sdpa", "flash_attention_2"]
DType = Literal["auto", "float16", "bfloat16", "float32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersOptions:
    """Options of the ``transformers`` backend."""

    dtype: DType = "auto"
    device: str = "auto"
    """``auto`` takes the first CUDA device, or else the CPU."""
    attention: Attention = "auto"
    compile: bool = False
    """Run the forward pass through ``torch.compile``."""
    n_threads: int | None = None
    """CPU threads; None takes the physical cores that this process may use."""
    trust_remote_code: bool = False


class TransformersModel:
    """A causal language model in memory."""

    def __init__(self, model: Any, tokenizer: Any, options: Any, prompt_format: str) -> None:
        import torch

        self.clock = monotonic
        self._torch = torch
        self._model = model
        self._forward = torch.compile(model) if getattr(options, "compile", False) else model
        self._tokenizer = tokenizer
        self._prompt_format = prompt_format
        self._cache: Any = None
        self._kept: tuple[tuple[int, ...], Any] | None = None
        """The prompt that the cache begins with, and the logits that followed it."""
        self._held: list[int] = []
        """The tokens that the cache begins with."""
        self._ends = _end_tokens(model, tokenizer)
        self.threads = torch.get_num_threads()
        self.context_tokens = int(getattr(model.config, "max_position_embeddings", 2**31 - 1))
        self.keep_logprobs = False
        self.logprobs: list[float] = []
        self._peak = 0
        """Peak of the device's memory before it was last probed."""
        self.facts = self._read_facts()
        self.seen: dict[str, str] = {}

    def _read_facts(self) -> dict[str, str]:
        import transformers

        torch, model = self._torch, self._model
        dtypes = sorted({str(parameter.dtype).removeprefix("torch.") for parameter in model.parameters()})
        return {
            **_switches(model),
            "parameters by dtype": _count(model, lambda parameter: str(parameter.dtype).removeprefix("torch.")),
            "parameters by device": _count(model, lambda parameter: str(parameter.device)),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "attention": str(model.config._attn_implementation),  # the only place that tells what is in force
            "dtype": str(model.dtype).removeprefix("torch."),
            "dtypes": "+".join(dtypes),
            "device": str(model.device),
            "cpu capability": torch.backends.cpu.get_cpu_capability(),
            "n_threads": str(self.threads),
            "interop threads": str(torch.get_num_interop_threads()),
            "cuda": str(torch.version.cuda),
        }

    @property
    def footprint_bytes(self) -> int:
        """Bytes of the parameters and buffers in memory."""
        return int(self._model.get_memory_footprint())

    def render(self, messages: Sequence[Message]) -> list[int]:
        """See `LoadedModel.render`."""
        if self._prompt_format == "raw":
            text = "\n".join(message["content"] for message in messages)
            return list(self._tokenizer(text, add_special_tokens=True)["input_ids"])
        if not self._tokenizer.chat_template:
            raise LoadError('the tokenizer has no chat template; set prompt_format = "raw" or use a model that has one')
        text = self._tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            add_generation_prompt=True,
            tokenize=False,
            strftime_now=frozen_strftime,
        )
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def encode(self, text: str) -> list[int]:
        """See `LoadedModel.encode`."""
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        """See `LoadedModel.decode`."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def is_end(self, token: int) -> bool:
        """See `LoadedModel.is_end`."""
        return token in self._ends

    def stream(self, prompt: Sequence[int], max_new_tokens: int) -> Iterator[Prefilled | int]:
        """See `LoadedModel.stream`. Taking the token to the CPU synchronizes the device."""
        check_room(len(prompt), max_new_tokens, self.context_tokens)
        self.logprobs = []
        logits = self._prefill(prompt)
        yield Prefilled(int(self._cache.get_seq_length()))
        yield from self._answer(logits, max_new_tokens)

    def resume(self, prompt: Sequence[int], kept: int, max_new_tokens: int) -> Iterator[Prefilled | int]:
        """See `Continuing.resume`."""
        check_room(len(prompt), max_new_tokens, self.context_tokens)
        check_kept(prompt, kept, self._held)
        if not kept:
            yield from self.stream(prompt, max_new_tokens)
            return
        self.logprobs, self._kept, self._held = [], None, []
        if not self._roll_back(kept):
            raise Unavailable(f"the cache of this model cannot be cut to its first {kept} tokens")
        logits = self._step(list(prompt[kept:]))
        self._synchronize()
        self._held = list(prompt)
        yield Prefilled(int(self._cache.get_seq_length()) - kept)
        yield from self._answer(logits, max_new_tokens)

    def stream_batch(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int
    ) -> Iterator[Prefilled | tuple[int, ...]]:
        """See `Batching.stream_batch`: one row for each sequence, none of them padded."""
        from transformers import DynamicCache

        check_room(len(prompts[0]), max_new_tokens, self.context_tokens)
        cache = DynamicCache(config=self._model.config)
        try:
            logits = self._run([list(prompt) for prompt in prompts], cache, keep=1)
        except self._torch.OutOfMemoryError as fault:
            raise Unavailable(f"there is no room for {len(prompts)} sequences: {fault}") from fault
        self._synchronize()
        yield Prefilled(int(cache.get_seq_length()) * len(prompts))
        for remaining in range(max_new_tokens, 0, -1):
            tokens = logits[:, -1].argmax(dim=-1).tolist()
            yield tuple(tokens)
            if remaining > 1:
                logits = self._run([[token] for token in tokens], cache, keep=1)

    def _answer(self, logits: Any, max_new_tokens: int) -> Iterator[int]:
        """Greedy tokens on top of the cache."""
        for remaining in range(max_new_tokens, 0, -1):
            token = int(logits.argmax())
            if self.keep_logprobs:
                self.logprobs.append(self._logprob(logits, token))
            yield token
            if remaining > 1:
                logits = self._step([token])
                self._held.append(token)

    def weigh(self, prompt: Sequence[int], answer: Sequence[int]) -> list[float]:
        """See `Weighing.weigh`."""
        check_room(len(prompt), len(answer), self.context_tokens)
        logits = self._prefill(prompt)
        found: list[float] = []
        for position, token in enumerate(answer):
            if position:
                logits = self._step([answer[position - 1]])
            found.append(self._logprob(logits, token))
        return found

    def force(self, prompt: Sequence[int], answer: Sequence[int], *, batched: bool) -> Iterator[Any]:
        """See `Forcing.force`."""
        check_room(len(prompt), len(answer), self.context_tokens)
        yield _to_row(self._return_to(prompt))
        pieces = cut_answer(len(answer)) if batched else (slice(at, at + 1) for at in range(len(answer) - 1))
        for piece in pieces:
            for logits in self._evaluate(list(answer[piece])):
                yield _to_row(logits)

    def _return_to(self, prompt: Sequence[int]) -> Any:
        """The cache and the logits right after the prompt: what is there of it already, or else evaluated anew."""
        ids = tuple(prompt)
        if self._kept is None or self._kept[0] != ids or not self._roll_back(len(ids)):
            logits = self._prefill(prompt)
            self._kept = ids, logits
        return self._kept[1]

    def _roll_back(self, length: int) -> bool:
        """Whether the cache could be cut to its first `length` tokens; one of a sliding window may not."""
        surplus = int(self._cache.get_seq_length()) - length
        try:
            if surplus:
                self._cache.crop(-surplus)
        except (RuntimeError, ValueError):
            return False
        return int(self._cache.get_seq_length()) == length

    def _logprob(self, logits: Any, token: int) -> float:
        """Log-probability of `token`, in single precision whatever the model computes in."""
        return float(self._torch.log_softmax(logits.float(), dim=-1)[token])

    def _prefill(self, prompt: Sequence[int]) -> Any:
        """Clear all state and evaluate the prompt; logits of its last position."""
        from transformers import DynamicCache

        self._kept = None
        self._cache = DynamicCache(config=self._model.config)
        logits = self._step(list(prompt))
        self._synchronize()
        self.seen["inference mode"] = _yes(logits.is_inference())
        self._held = list(prompt)
        if self.keep_logprobs:
            self._kept = tuple(prompt), logits
        return logits

    def _step(self, ids: list[int]) -> Any:
        """Logits of the last position after `ids` have been evaluated on top of the cache."""
        return self._evaluate(ids, keep=1)[-1]

    def _evaluate(self, ids: list[int], *, keep: int = 0) -> Any:
        """Logits after each of `ids` (or the last `keep` of them), evaluated at once on top of the cache."""
        return self._run([ids], self._cache, keep=keep)[0]

    def _run(self, rows: list[list[int]], cache: Any, *, keep: int) -> Any:
        """Logits of each row, evaluated at once on top of `cache`."""
        torch = self._torch
        with torch.inference_mode():
            inputs = torch.tensor(rows, device=self._model.device)
            return self._forward(inputs, cache=cache, use_cache=True, logits_to_keep=keep).logits

    def _synchronize(self) -> None:
        if self._model.device.type == "cuda":
            self._torch.cuda.synchronize()

    def kv_cache_bytes(self) -> tuple[int, int] | None:
        """Bytes of the tensors in the cache of the last generation, and its length."""
        if self._cache is None:
            return None
        # layers that share keys of others have None, and those with a state of another kind have none
        held = [getattr(layer, name, None) for layer in self._cache.layers for name in ("keys", "values")]
        tensors = [tensor for tensor in held if tensor is not None]
        return sum(tensor.nbytes for tensor in tensors), int(self._cache.get_seq_length())

    def device_bytes(self) -> int | None:
        """Peak of torch's CUDA allocator, without what probing took; None on the CPU."""
        if self._model.device.type != "cuda":
            return None
        return max(self._peak, int(self._torch.cuda.max_memory_allocated()))

    def probe(self, size_bytes: int) -> DeviceRates:
        """See `Probing.probe`."""
        self._peak = max(self._peak, int(self._torch.cuda.max_memory_allocated()))
        try:
            return measure_device(self._torch, self._model.device, self._model.dtype, size_bytes)
        finally:
            self._torch.cuda.empty_cache()
            self._torch.cuda.reset_peak_memory_stats()

    def close(self) -> None:
        """Drop the references; the end of the process frees the memory."""
        self._cache = self._model = self._forward = None


def _to_row(logits: Any) -> Any:
    """Logits as an array on the host, float32 whatever the model computes in."""
    return logits.float().cpu().numpy()


def _yes(fact: object) -> str:
    return "yes" if fact else "no"


def _switches(model: Any) -> dict[str, str]:
    """What of a module's state decides how it computes."""
    text = model.config.get_text_config()
    return {
        "eval mode": _yes(not any(module.training for module in model.modules())),
        "use_cache": _yes(getattr(text, "use_cache", True)),
        "gradient checkpointing": _yes(getattr(model, "is_gradient_checkpointing", False)),
    }


def _count(model: Any, kind: Callable[[Any], str]) -> str:
    """``float16=134515008 float32=576``: elements of the parameters by kind, as they are stored."""
    counts: Counter[str] = Counter()
    for parameter in model.parameters():
        counts[kind(parameter)] += parameter.numel()
    return " ".join(f"{name}={number}" for name, number in sorted(counts.items()))


def load_model(weights: Path | None, options: Any, prompt_format: str, quantization: Any = None) -> TransformersModel:
    """Load a directory of safetensors, never pickles; `quantization` is a transformers quantization config."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if weights is None:
        raise LoadError("this backend needs a directory of safetensors")
    if options.n_threads:
        torch.set_num_threads(options.n_threads)
    device = pick_device(options.device)
    placement = {"device_map": {"": device}} if quantization is not None else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(weights, trust_remote_code=options.trust_remote_code)
        model = AutoModelForCausalLM.from_pretrained(
            weights,
            dtype=options.dtype if options.dtype == "auto" else getattr(torch, options.dtype),
            attn_implementation=None if options.attention == "auto" else options.attention,
            quantization_config=quantization,
            use_safetensors=True,
            trust_remote_code=options.trust_remote_code,
            **placement,
        )
    except (OSError, ValueError, RuntimeError, ImportError, KeyError) as fault:
        raise LoadError(f"{weights}: {fault}") from fault
    model = model if placement else model.to(device)
    return TransformersModel(model.eval(), tokenizer, options, prompt_format)


def pick_device(asked: str) -> str:
    """The device to use. Raises Unavailable when a CUDA device is asked for and there is none."""
    import torch

    if asked.startswith("cuda") and not torch.cuda.is_available():
        raise Unavailable(f"device '{asked}' was asked for, but this torch ({torch.__version__}) sees no CUDA device")
    if asked != "auto":
        return asked
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Every token id that the model's files name as an end of text."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    ends = declared if isinstance(declared, list) else [declared]
    return frozenset(token for token in [*ends, tokenizer.eos_token_id] if token is not None)


class Transformers:
    """The ``transformers`` backend."""

    options: ClassVar[type[Any]] = TransformersOptions
    requires: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    weights_format: ClassVar[Literal["gguf", "safetensors", "none"]] = "safetensors"
    makes: ClassVar[tuple[str, ...]] = ("dequantized",)
    makers: ClassVar[tuple[str, ...]] = ("transformers",)

    def load(self, weights: Path | None, options: TransformersOptions, prompt_format: str) -> TransformersModel:
        """Load a directory of safetensors."""
        return load_model(weights, options, prompt_format)

    def make(self, recipe: str, source: Path, destination: Path) -> None:
        """``dequantized``: turn a GGUF file into a directory of FP16 safetensors with its tokenizer."""
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

        try:
            model = AutoModelForCausalLM.from_pretrained(
                source.parent,
                gguf_file=source.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=torch.float16,
            )
            tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
        except (OSError, ValueError, RuntimeError, ImportError, KeyError) as fault:
            raise LoadError(f"{source}: transformers cannot read this GGUF: {fault}") from fault
        model.save_pretrained(destination, safe_serialization=True)
        tokenizer.save_pretrained(destination)


BACKEND = Transformers()
