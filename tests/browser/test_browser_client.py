"""The browser tells what the tests of the page rely on being told."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.browser import Browser, BrowserFault, miss

NOISY = """<!doctype html><title>noisy</title><body>
<script>
console.error("red", 1); console.log("unseen"); alert("hello"); document.documentElement.dataset.ran = 1;
setTimeout(() => { throw new Error("late") }, 0);
</script>
<img src="http://127.0.0.1:9/picture.png" alt="">
<button onclick="this.textContent = 'pressed'">press</button>
<p style="width: 700px">wide</p>
"""


def test_what_a_page_does_is_noted(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "noisy.html"
    file.write_text(NOISY, encoding="utf-8")
    with browser.open(file, width=390) as tab:
        tab.evaluate("new Promise(done => setTimeout(done, 50))")
        told = "\n".join(tab.problems)
        assert "console: red 1" in told
        assert "unseen" not in told
        assert "dialog: hello" in told
        assert "exception: Error: late" in told
        assert "http://127.0.0.1:9/picture.png" in tab.requests
        assert tab.evaluate("document.documentElement.dataset.ran") == "1"
        assert tab.evaluate("document.documentElement.scrollWidth") > 390
        tab.press("Tab")
        tab.press("Enter")
        assert tab.evaluate("document.activeElement.textContent") == "pressed"
        with pytest.raises(BrowserFault, match="nothing"):
            tab.evaluate("nothing.at.all")


@pytest.mark.parametrize(("ci", "outcome"), [
    (None, pytest.skip.Exception), ("false", pytest.skip.Exception), ("true", pytest.fail.Exception),
])  # fmt: skip
def test_what_is_missing_goes_unnoticed_nowhere_but_on_a_persons_machine(
    monkeypatch: pytest.MonkeyPatch, ci: str | None, outcome: type[BaseException]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if ci is not None:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="make browser"):
        miss("there is no browser")
