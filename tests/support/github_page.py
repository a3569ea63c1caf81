"""What GitHub would make of Markdown: an independent reader of it, and what GitHub looks for in what that reads.

Outside of code GitHub looks for mentions, references, links, shortcodes and mathematics.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

ACTIVE = {
    "mention": re.compile(r"@\w"),
    "reference": re.compile(r"#\d|\bgh-\d", re.IGNORECASE),
    "commit": re.compile(r"\b[0-9a-f]{7,40}\b"),
    "address": re.compile(r"://|www\.|mailto:|xmpp:", re.IGNORECASE),
    "shortcode": re.compile(r":\w+:"),
    "mathematics": re.compile(r"\$"),
}
ATTACKS = (
    "@octocat", "@org/team", "x@evil.example", "#1", "GH-1", "org/repo#1",
    "0123456789abcdef0123456789abcdef01234567", "org/repo@0123456789abcdef", "https://evil.example",
    "www.evil.example", "mailto:a@b.example", "[x](https://evil.example)", "![x](https://evil.example/x.png)",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!-- hidden", "-->", "</details>", "<details>",
    "```", "`" * 79, "`" * 80, "`" * 81, "`", "``", "|", "\\|", "\\", "\n\n# heading\n\n", "\r\n| a |\n|---|\n",
    "~~x~~", "**x**", "$x$", "$`x`$", ":tada:", "[^1]", "[x]: https://evil.example", "\u202e", "\u2066", "\u200b",
    "\ufeff", "\u115f", "\x1b[2J", "\x00", "&lt;b&gt;", "&#64;octocat", "a\u0300" * 40, "> [!NOTE]", "- [ ] task",
    "::error::x", "##[error]x", "x" * 999,
)  # fmt: skip


class GithubPage(HTMLParser):
    """What a browser would see: tags, and the text outside of code."""

    def __init__(self, markdown: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.comments: list[str] = []
        self.text: list[str] = []
        self.code: list[str] = []
        self.whole: list[str] = []
        self._inside = 0
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, value in attrs if not (value or "").startswith("text-align:")}
        self._inside += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag == "code"

    def handle_data(self, data: str) -> None:
        (self.code if self._inside else self.text).append(data)
        self.whole.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def active_in(page: GithubPage) -> dict[str, str]:
    """What GitHub would find there: kind → what it is."""
    text = "\n".join(page.text)
    return {name: found[0] for name, pattern in ACTIVE.items() if (found := pattern.search(text))}
