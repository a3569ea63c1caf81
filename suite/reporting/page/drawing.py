"""Pictures as inline SVG that a strict Content-Security-Policy lets pass and a dark page can recolour.

matplotlib draws with placeholder colours. What it writes is then rewritten: style attributes, which the policy forbids, become
presentation attributes; placeholders become classes (``f-`` fills, ``s-`` strokes) whose colours the style sheet holds; ids
are renumbered under the picture's own prefix; numbers lose digits that no screen shows. The same picture gives the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Paint = Callable[["Figure"], None]

PAPER, INK, MUTED, GRID, GHOST = "#0a0101", "#0a0102", "#0a0103", "#0a0104", "#0a0105"
BAD, GOOD, UNSURE = "#0a0106", "#0a0107", "#0a0108"
SERIES: tuple[tuple[str, str], ...] = (
    ("#0a0201", "o"),
    ("#0a0202", "s"),
    ("#0a0203", "^"),
    ("#0a0204", "D"),
    ("#0a0205", "v"),
)
"""Colour and marker of the first, second, … of a few things; the marker tells them apart without colour. They recur."""

_CLASSES: Mapping[str, str] = {
    PAPER: "paper", INK: "ink", MUTED: "muted", GRID: "grid", GHOST: "ghost", BAD: "bad", GOOD: "good", UNSURE: "unsure",
    **{colour: f"c{number}" for number, (colour, _) in enumerate(SERIES, start=1)},
}  # fmt: skip
FONT = 11.5
"""Pixels, as are all lengths here."""
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_KEPT = frozenset(
    {
        "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "opacity", "fill-opacity",
        "stroke-opacity", "text-anchor", "font-size", "font-weight", "font-style",
    }
)  # fmt: skip
_MEASURES = frozenset({"d", "x", "y", "width", "height", "transform", "points", "stroke-width", "stroke-dasharray"})


def series(number: int) -> tuple[str, str]:
    """Colour and marker of the `number`-th of a few things, from 0."""
    return SERIES[number % len(SERIES)]


def draw(ident: str, size: tuple[int, int], label: str, paint: Paint) -> str:
    """What `paint` puts into an empty figure of `size` (width, height), as one ``svg`` element named by `label`.

    `ident` prefixes its ids. Texts must be free of control characters (`suite.reporting.hostile.one_line`).
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    written = io.StringIO()
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("ignore")  # a glyph that its own font lacks: the browser has another
        mpl.rcdefaults()  # whatever a person's matplotlibrc says, the same bytes
        mpl.rcParams.update(_parameters())  # type: ignore[arg-type]
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72)
        FigureCanvasSVG(figure)
        paint(figure)
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _rewrite(written.getvalue(), ident, size, label)


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes in pixels from the top left corner, with a light grid along x and no frame."""
    whole_width, whole_height = (72 * inches for inches in figure.get_size_inches())
    axes = figure.add_axes(
        (left / whole_width, 1 - (top + height) / whole_height, width / whole_width, height / whole_height)
    )
    axes.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    return axes


def label_rows(axes: Axes, names: list[str]) -> None:
    """Names down the y axis, the first on top, with a light grid along x."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=1)
    for label in axes.get_yticklabels():
        label.set_color(INK)


def room_for(names: list[str]) -> float:
    """Pixels that the longest of `names` takes beside an axis."""
    return 14 + 0.6 * FONT * max((len(name) for name in names), default=0)


def _parameters() -> dict[str, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "quantdrift",
        "text.parse_math": False,
        "font.size": FONT,
        "axes.labelsize": FONT,
        "axes.labelcolor": MUTED,
        "axes.titlesize": FONT + 0.5,
        "axes.titlecolor": INK,
        "axes.titlelocation": "left",
        "axes.edgecolor": GRID,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "savefig.edgecolor": "none",
        "text.color": INK,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelsize": FONT,
        "ytick.labelsize": FONT,
        "lines.solid_capstyle": "butt",
    }


# ------------------------------------------------------------------------------------------------------- rewriting


def _rewrite(text: str, ident: str, size: tuple[int, int], label: str) -> str:
    root = ElementTree.fromstring(text)  # matplotlib wrote it a moment ago
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    used = _referenced(root)
    names = {old: f"{ident}-{number}" for number, old in enumerate(sorted(used), start=1)}
    whole = _copy(root, names)
    view = f"0 0 {size[0]} {size[1]}"
    given = {"viewBox": view, "width": str(size[0]), "height": str(size[1]), "role": "img", "aria-label": label}
    whole.attrib.clear()
    whole.attrib.update(given)
    return ElementTree.tostring(whole, encoding="unicode")


def _referenced(root: ElementTree.Element) -> set[str]:
    """Ids that something points at; all others only cost room."""
    found: set[str] = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == _HREF:
                found.add(value.removeprefix("#"))
            found.update(_REFERENCE.findall(value))
    return found


def _copy(element: ElementTree.Element, names: Mapping[str, str]) -> ElementTree.Element:
    made = ElementTree.Element(element.tag.removeprefix(_SVG), _attributes(element, names))
    made.text, made.tail = _stripped(element.text), None
    for child in element:
        copied = _copy(child, names)
        if len(copied) or copied.attrib or copied.text or copied.tag not in ("g", "defs"):
            made.append(copied)
    return made


def _stripped(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _attributes(element: ElementTree.Element, names: Mapping[str, str]) -> dict[str, str]:
    made: dict[str, str] = {}
    classes: list[str] = []
    given = {**element.attrib, **_declarations(element.attrib.get("style", ""))}
    for key, value in given.items():
        if key == _HREF:
            made["href"] = f"#{names[value.removeprefix('#')]}"
        elif key == "id":
            made.update({"id": names[value]} if value in names else {})
        elif key in ("fill", "stroke") and value.lower() in _CLASSES:
            classes.append(f"{key[0]}-{_CLASSES[value.lower()]}")
        elif key == "clip-path":
            made[key] = _REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", value)
        elif key in _MEASURES:
            made[key] = _NUMBER.sub(lambda found: f"{round(float(found[0]), 1):g}", value).strip()
        elif key in _KEPT:
            made[key] = value
    if classes:
        made["class"] = " ".join(classes)
    return made


def _declarations(style: str) -> dict[str, str]:
    """The declarations of a style attribute; of the shorthand ``font`` the size is kept."""
    pairs = (part.split(":", 1) for part in style.split(";") if ":" in part)
    found = {key.strip(): value.strip() for key, value in pairs}
    shorthand = found.pop("font", "")
    if size := re.search(r"([\d.]+)px", shorthand):
        found["font-size"] = size[1]
    if "font-size" in found:
        found["font-size"] = found["font-size"].removesuffix("px")
    if "bold" in shorthand or found.get("font-weight") in ("bold", "700"):
        found["font-weight"] = "bold"
    return {key: value for key, value in found.items() if key in _KEPT or key == "clip-path"}
