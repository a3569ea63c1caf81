"""Scorers: an answer → a `Score`.

A scorer of one's own is a dotted path in the case file, ``scorer = "my_package.my_module:Polite"``: a class that is
built with the case's options, or a plain function ``(answer, case, *, truncated, **options) -> Score``.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from suite.errors import CaseFileError, UsageError
from suite.records import Case, Generation, Score, ScorerSpec, TrialStatus
from suite.schema import nearest, parse
from suite.scorers.base import ChecksCases, Scorer
from suite.scorers.thoughts import strip_thoughts

BUILT_IN: Mapping[str, str] = {
    "choice": "suite.scorers.choice:Choice",
    "code": "suite.scorers.code:Code",
    "exact": "suite.scorers.exact:Exact",
    "fuzzy": "suite.scorers.fuzzy:Fuzzy",
    "number": "suite.scorers.number:Number",
}
"""Imported when first used, so that a suite without fuzzy cases never loads rapidfuzz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionScorer:
    """A plain function of the user's own as a `Scorer`. Its version is the function's attribute ``version``, or 1."""

    name: str
    function: Callable[..., Score]
    version: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, answer: str, case: Case, *, truncated: bool) -> Score:
        """Call the function with the case's options."""
        return self.function(answer, case, truncated=truncated, **self.options)


def resolve(name: str, options: Mapping[str, Any] | None = None) -> Scorer:
    """The scorer called `name`, built with `options`.

    `name` is a built-in one or ``package.module:attr``. Raises UsageError for an unknown name, a module or attribute
    that cannot be imported, and options that the scorer does not take.
    """
    if name not in BUILT_IN and ":" not in name:
        raise UsageError(f"unknown scorer '{name}'; {nearest(name, BUILT_IN)} (or 'package.module:attr' of your own)")
    made = _build(name, _import(name), dict(options or {}))
    if not (callable(made) and isinstance(getattr(made, "name", None), str) and hasattr(made, "version")):
        raise UsageError(f"scorer '{name}' is no scorer: it needs 'name', 'version' and to be callable")
    return cast("Scorer", made)


def identify(spec: ScorerSpec) -> str:
    """Name, version and options in one line: two scores are comparable when it is the same for both."""
    options = ", ".join(f"{key}={spec.options[key]!r}" for key in sorted(spec.options))
    return f"{spec.name}@{resolve(spec.name, spec.options).version}" + (f"({options})" if options else "")


def grade(case: Case, generation: Generation) -> Score:
    """Grade what was generated for `case`: thoughts are stripped first, then the case's scorer decides.

    Nothing but white space is EMPTY, or TRUNCATED when the budget ran out within a thought. Only SCORED carries a
    value.
    """
    truncated = generation.finish_reason == "length"
    answer = strip_thoughts(generation.text)
    if answer:
        return resolve(case.scorer.name, case.scorer.options)(answer, case, truncated=truncated)
    if truncated:
        return Score(status=TrialStatus.TRUNCATED, explanation="the token budget ran out before an answer began")
    return Score(
        status=TrialStatus.EMPTY, explanation="no answer" if generation.text.strip() else "nothing was generated"
    )


def check_case(case: Case) -> None:
    """Raise CaseFileError, one line for each fault, when the scorer is unknown or cannot work with `case`."""
    where = f"{case.source or case.id}: "
    try:
        scorer = resolve(case.scorer.name, case.scorer.options)
    except UsageError as unusable:
        raise CaseFileError("\n".join(where + line for line in str(unusable).splitlines())) from None
    faults = scorer.faults(case) if isinstance(scorer, ChecksCases) else ()
    if faults:
        raise CaseFileError("\n".join(where + fault for fault in faults))


def _import(name: str) -> Any:
    module_name, _, attribute = BUILT_IN.get(name, name).partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ImportError as missing:
        raise UsageError(f"scorer '{name}': module '{module_name}' cannot be imported: {missing}") from missing
    except AttributeError:
        raise UsageError(f"scorer '{name}': module '{module_name}' has no '{attribute}'") from None


def _build(name: str, attribute: Any, options: dict[str, Any]) -> object:
    if name in BUILT_IN:
        return parse(attribute, options, where=f"scorer '{name}'", error=UsageError)
    try:
        if inspect.isclass(attribute):
            return attribute(**options)
        if inspect.isfunction(attribute):
            inspect.signature(attribute).bind("", None, truncated=False, **options)
            version = getattr(attribute, "version", 1)
            return FunctionScorer(name=name, function=attribute, version=version, options=options)
    except TypeError as refused:
        raise UsageError(f"scorer '{name}' does not take the options {sorted(options)}: {refused}") from None
    if options:
        raise UsageError(f"scorer '{name}' is a ready-made object and takes no options (got {sorted(options)})")
    return cast("object", attribute)
