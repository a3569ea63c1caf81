"""Read, check and complete a matrix file: afterwards every default is filled in and nothing is left to guess."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from suite.errors import MatrixFileError, UsageError, nearest
from suite.matrix.added import add_variants
from suite.matrix.tables import KEPT, MatrixTable
from suite.matrix.variants import OptionsOf, VariantReader
from suite.records import Budget, Deadlines, Matrix, Protocol, Scenario, Tolerance, Variant
from suite.schema import parse

VARIANT_NAME = re.compile(r"[a-z0-9][a-z0-9_.]*")
FEWEST_RELOADS = 3
"""Cycles from which on a median leaves out the one in which a library fills its pools."""
MODEL_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def load_matrix(file: Path, *, added: Sequence[str] = (), options_of: OptionsOf) -> Matrix:
    """The validated matrix in `file`, with one more variant for each source in `added` (``--matrix-add``).

    `options_of` gives the dataclass of a backend's options, and raises UsageError for a backend that it does not know.
    Local paths are relative to the directory of `file`; those in `added`, to the current directory first.
    Raises MatrixFileError naming the file, the key, what is wrong with it, and the nearest known name. No weights are
    read and nothing is downloaded.
    """
    table = parse(MatrixTable, _read_toml(file), where=str(file), error=MatrixFileError)
    _check_names(file, table)
    reader = VariantReader(file=file, model=table.model, defaults=table.defaults, options_of=options_of)
    reader.check_defaults()
    declared = _collect(reader.read(name, variant) for name, variant in table.variants.items())
    variants = (*declared, *add_variants(added, reader=reader, taken={variant.name for variant in declared}))
    scenarios = tuple(Scenario(name=name, **asdict(entry)) for name, entry in table.scenarios.items())
    _check_references(file, variants)
    _check_scenarios(file, scenarios)
    _check_context(file, variants, scenarios)
    return Matrix(
        model=table.model.name,
        variants=variants,
        scenarios=scenarios,
        protocol=Protocol(**asdict(table.protocol)),
        policy={metric: Tolerance(**asdict(entry)) for metric, entry in table.policy.items()},
        deadlines=Deadlines(**asdict(table.deadlines)),
        budgets={metric: Budget(**asdict(entry)) for metric, entry in table.budget.items()},
        file=str(file),
        notes=table.model.notes,
    )


def select_variants(matrix: Matrix, names: Sequence[str]) -> Matrix:
    """The matrix with only the variants in `names`, in the order of the file; no names leaves it as it is.

    Raises UsageError for a name that the matrix does not hold.
    """
    known = {variant.name for variant in matrix.variants}
    unknown = [name for name in names if name not in known]
    if unknown:
        lines = [f"{matrix.file} has no variant '{name}'; {nearest(name, known)}" for name in unknown]
        raise UsageError("\n".join(lines))
    if not names:
        return matrix
    return replace(matrix, variants=tuple(variant for variant in matrix.variants if variant.name in names))


def _read_toml(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        raise MatrixFileError(
            f"{file} does not exist; write one, or name another with --matrix-file (examples: suite/examples/*.toml)"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise MatrixFileError(f"{file}: cannot be read: {problem}") from None


def _collect(readings: Iterable[Variant | MatrixFileError]) -> tuple[Variant, ...]:
    """The variants, or one error with the faults of all of them."""
    results = list(readings)
    faults = [str(result) for result in results if isinstance(result, MatrixFileError)]
    if faults:
        raise MatrixFileError("\n".join(dict.fromkeys(faults)))  # what variants inherit is wrong once
    return tuple(result for result in results if isinstance(result, Variant))


def _check_names(file: Path, table: MatrixTable) -> None:
    empty = [key for key in ("variants", "scenarios") if not getattr(table, key)]
    faults = [f"key '{key}': there must be at least one" for key in empty]
    if not MODEL_NAME.fullmatch(table.model.name):
        faults.append(f"key 'model.name': '{table.model.name}' {_wording(MODEL_NAME)}")
    for key in ("variants", "scenarios"):
        bad = [name for name in getattr(table, key) if not VARIANT_NAME.fullmatch(name)]
        faults += [f"key '{key}.{name}': the name {_wording(VARIANT_NAME)}" for name in bad]
    faults += [
        f"key 'variants.{name}': the name must not end in '{KEPT}', which marks the first baseline of a variant"
        for name in table.variants
        if name.endswith(KEPT)
    ]
    if faults:
        raise MatrixFileError("\n".join(f"{file}: {fault}" for fault in faults))


def _wording(pattern: re.Pattern[str]) -> str:
    signs = "_ . -" if pattern is MODEL_NAME else "_ ."
    return f"must be lower-case letters, digits and {signs}, starting with a letter or digit: it names files and tests"


def _check_references(file: Path, variants: Sequence[Variant]) -> None:
    references = [variant.name for variant in variants if variant.reference]
    if len(references) > 1:
        raise MatrixFileError(f"{file}: {' and '.join(references)} are all marked reference = true; keep it on one")


def _check_scenarios(file: Path, scenarios: Sequence[Scenario]) -> None:
    """Each scenario is of one kind, and leaves something to evaluate."""
    faults = []
    for scenario in scenarios:
        kinds = {
            "kept_tokens": scenario.kept_tokens > 0,
            "batch": scenario.batch > 1,
            "turns": scenario.turns > 1,
            "reloads": scenario.reloads > 0,
        }
        asked = [f"'{key}'" for key, is_asked in kinds.items() if is_asked]
        where = f"{file}: scenarios.{scenario.name}"
        if len(asked) > 1:
            faults.append(f"{where}: {' and '.join(asked)} exclude one another; make a scenario of each")
        if scenario.watch and asked not in ([], ["'kept_tokens'"]):
            faults.append(f"{where}: 'watch' goes with one sequence in one turn; take it out, or take out {asked[0]}")
        if 0 < scenario.reloads < FEWEST_RELOADS:
            faults.append(
                f"{where}: reloads = {scenario.reloads} cannot tell a leak from a pool that fills once; make it "
                f"{FEWEST_RELOADS} or more"
            )
        if scenario.kept_tokens >= scenario.prompt_tokens:
            faults.append(
                f"{where}: kept_tokens = {scenario.kept_tokens} leaves nothing of {scenario.prompt_tokens} prompt tokens "
                "to evaluate; prompt_tokens counts the kept ones too, so make it larger"
            )
    if faults:
        raise MatrixFileError("\n".join(faults))


def _check_context(file: Path, variants: Sequence[Variant], scenarios: Sequence[Scenario]) -> None:
    """A scenario that fits no declared context cannot be measured at all. Of one that fits some, the others are told."""
    declared = {variant.name: variant.options.get("n_ctx") for variant in variants}
    largest = [n_ctx for n_ctx in declared.values() if isinstance(n_ctx, int) and n_ctx > 0]
    if len(largest) < len(declared):
        return  # a variant whose context only its weights tell
    faults = [
        f"{file}: scenarios.{scenario.name} needs {scenario.context_tokens} tokens, but no variant has more than "
        f"n_ctx = {max(largest)}; raise n_ctx or shorten the scenario"
        for scenario in scenarios
        if scenario.context_tokens > max(largest)
    ]
    if faults:
        raise MatrixFileError("\n".join(faults))
