"""Code answers, graded without running them: taken out, parsed and compared."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rapidfuzz import fuzz

from suite.records import Case, Score
from suite.scorers.base import not_found, scored

NOT_RUN = "parsed and compared, not run"
"""Said in every rule and explanation, so that nobody takes a similarity for a passed test."""

_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\n(.*?)(```|\Z)", re.DOTALL)
_BEGINS = re.compile(r"^(?:def|async def|class|import|from|@)\b|^@", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Python source found in an answer, and where."""

    rule: str
    """``fenced`` or ``raw``."""
    source: str
    complete: bool
    """Something stands after it, so that it was not cut short when the budget ran out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """How near a Python answer comes to the canonical solution; it is *not run*.

    The target is the name of the function. The answer's source is taken from a ``fenced`` block (the first that
    defines the function, else the first that parses), or ``raw`` from the first line that looks like Python, as far
    as it parses.

    The value is 1 when the function, normalised, equals the solution or one of the ``alternatives``; else ``partial``
    × similarity (rapidfuzz ``ratio`` of the normalised sources); 0 when the function is missing or takes another
    number of arguments. Normalised: parsed, without comments, docstrings and annotations, arguments and local names
    numbered in order of appearance.

    What does *not* match: a right function that is written in another way gets part of the credit only, and a wrong
    one that differs in one operator gets as much. Both are the price of not running it. No Python at all is
    UNPARSABLE; source that was cut short by the budget is TRUNCATED.
    """

    name: ClassVar[str] = "code"
    version: ClassVar[int] = 1

    partial: float = 0.5
    """Credit for a similarity of 1 without equality."""
    alternatives: tuple[str, ...] = ()
    """Other canonical solutions."""

    def __call__(self, answer: str, case: Case, *, truncated: bool) -> Score:
        """Grade `answer` by its distance to the solution."""
        extracted = extract(answer, case.target, truncated=truncated)
        if extracted is None:
            return not_found(truncated=truncated, wanted="Python source that parses")
        rule = f"{extracted.rule} ({NOT_RUN})"
        found = _find_function(extracted.source, case.target)
        if found is None:
            explanation = f"{NOT_RUN}: defines no function '{case.target}'"
            return scored(0.0, correct=False, answer=extracted.source, rule=rule, explanation=explanation)
        value, explanation = self._compare(found, case)
        return scored(
            value, correct=value == 1.0, answer=extracted.source, rule=rule, explanation=f"{NOT_RUN}: {explanation}"
        )

    def faults(self, case: Case) -> tuple[str, ...]:
        """A solution that is missing, does not parse or does not define the target; asserts that do not parse."""
        faults = []
        if not 0 <= self.partial < 1:
            faults.append(f"scorer option 'partial' must be at least 0 and below 1 (got {self.partial!r})")
        if case.solution is None:
            faults.append("key 'solution' is missing: the scorer 'code' compares with it")
        sources = {"solution": case.solution or f"def {case.target}(): ..."}
        sources |= {f"scorer option 'alternatives.{i}'": text for i, text in enumerate(self.alternatives)}
        for key, source in sources.items():
            if not _parses(source):
                faults.append(f"{key} is not Python: {source!r}")
            elif _find_function(source, case.target) is None:
                faults.append(f"{key} defines no function '{case.target}', which the target names")
        return tuple(faults)

    def _compare(self, found: ast.FunctionDef, case: Case) -> tuple[float, str]:
        wanted = [_find_function(source, case.target) for source in (case.solution or "", *self.alternatives)]
        solutions = [function for function in wanted if function is not None and _arity(function) == _arity(found)]
        if not solutions:
            return 0.0, f"'{case.target}' takes {_arity(found)} arguments, unlike the solution"
        source = normalise(found)
        similarity = max(fuzz.ratio(source, normalise(solution)) for solution in solutions) / 100
        if similarity == 1.0:
            return 1.0, "equals the solution"
        return self.partial * similarity, f"similarity {similarity:.2f} to the solution"


def extract(answer: str, function: str, *, truncated: bool = False) -> Extracted | None:
    """The Python source in `answer`, by preference the one that defines `function`; None when nothing parses."""
    candidates = [c for c in _candidates(answer) if c.complete or not truncated]
    defining = (c for c in candidates if _find_function(c.source, function) is not None)
    return next(defining, candidates[0] if candidates else None)


def normalise(function: ast.FunctionDef) -> str:
    """Source of `function` in the form in which two are compared."""
    names = _local_names(function)
    return ast.unparse(_Normaliser(names).visit(ast.parse(ast.unparse(function))))


def _candidates(answer: str) -> Iterator[Extracted]:
    fences = list(_FENCE.finditer(answer))
    for fence in fences:
        closed = bool(fence[2])
        parsed = _longest_prefix(textwrap.dedent(fence[1]))
        if parsed is not None and parsed[0]:
            yield Extracted(rule="fenced", source=parsed[0], complete=closed or parsed[1])
    begin = None if fences else _BEGINS.search(answer)
    if begin is not None:
        parsed = _longest_prefix(answer[begin.start() :])
        if parsed is not None and parsed[0]:
            yield Extracted(rule="raw", source=parsed[0], complete=parsed[1])


def _longest_prefix(text: str) -> tuple[str, bool] | None:
    """The longest run of lines from the top that parses, and whether an unindented line stands after it."""
    lines = text.rstrip().splitlines()
    for count in range(len(lines), 0, -1):
        source = "\n".join(lines[:count]).strip()
        if _parses(source):
            rest = next((line for line in lines[count:] if line.strip()), "")
            return source, bool(rest) and not rest[0].isspace()
    return None


def _parses(source: str) -> bool:
    return _parse(source) is not None


def _parse(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # "\d" in a model's answer is its own affair
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # all that ast.parse raises on hostile text
            return None


def _find_function(source: str, name: str) -> ast.FunctionDef | None:
    tree = _parse(source)
    body = tree.body if tree else []
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _arity(function: ast.FunctionDef) -> int:
    arguments = function.args
    return len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)


def _local_names(function: ast.FunctionDef) -> dict[str, str]:
    """Arguments and assigned names → ``v0``, ``v1`` … in order of appearance."""
    arguments = [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]
    stored = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return {name: f"v{index}" for index, name in enumerate(dict.fromkeys([*arguments, *stored]))}


class _Normaliser(ast.NodeTransformer):
    """Drops docstrings and annotations, renames local names."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # the name that ast dispatches on
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            node.body = node.body[1:]
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        node.arg = self._names.get(node.arg, node.arg)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:  # the name that ast dispatches on
        node.id = self._names.get(node.id, node.id)
        return node
