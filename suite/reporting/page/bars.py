"""Pictures with one row a variant: divergence by domain, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from suite.records import ALL, Run
from suite.reporting import wording
from suite.reporting.fidelity import Fidelity
from suite.reporting.hostile import one_line
from suite.reporting.model import Report
from suite.reporting.page.drawing import INK, MUTED, PAPER, SERIES, label_rows, place, room_for, series
from suite.reporting.page.sheet import Picture, Sheet, bounds, heads, named, number, picture, whole_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 38


def draw_domains(report: Report) -> Picture | None:
    """Mean KLD by domain, on a logarithmic axis; None where no variant diverges."""
    shown = [row for row in report.fidelity if not row.reference and row.values.get("mean_kld")]
    domains = [domain for domain in report.domains if any(row.domains.get(domain) for row in shown)]
    if not shown or not domains:
        return None
    names = [one_line(row.variant, 24) for row in shown]

    def paint(figure: Figure, width: int) -> None:
        left = room_for(names)
        axes = place(figure, left, 30, width - left - 16, _ROW * len(names))
        label_rows(axes, names)
        axes.set_xscale("log")
        for place_, row in enumerate(shown):
            _draw_divergence(axes, place_, row, domains)
        _decades(axes)
        axes.set_xlabel("mean KLD, nats a token (each step ten times as far)")
        _legend(figure, width, [one_line(domain, 16) for domain in domains])

    height = 30 + _ROW * len(names) + 46
    worst = [f"{one_line(r.variant)} {', '.join(_told(r, d) for d in domains)}" for r in shown]
    words = (f"Dot plot, mean KL divergence from the reference by domain: {'; '.join(worst)}.", _caption(report, shown))
    return whole_picture("kld", "KLD by domain", words, paint, _domain_sheet(shown, domains), heights=(height, height))


def _told(row: Fidelity, domain: str) -> str:
    return f"{one_line(domain)} {wording.nats(row.domains.get(domain))}"


def _caption(report: Report, shown: Sequence[Fidelity]) -> str:
    left_out = [one_line(row.variant) for row in report.fidelity if row not in shown]
    text = "Stroke: all domains together; the band is its 95 % interval."
    return (
        f"{text} Not drawn, being the reference or no different from it: {wording.listed(left_out)}."
        if left_out
        else text
    )


def _draw_divergence(axes: Axes, at: int, row: Fidelity, domains: Sequence[str]) -> None:
    mean = row.values["mean_kld"]
    if row.interval is not None and row.interval[0] > 0:
        axes.plot([*row.interval], [at, at], color=INK, linewidth=5, alpha=0.18)
    axes.plot([mean, mean], [at - 0.36, at + 0.36], color=INK, linewidth=2)
    for place_, domain in enumerate(domains):
        value = row.domains.get(domain)
        if value:
            colour, marker = series(place_)
            y = at - 0.3 + 0.6 * (place_ + 0.5) / len(domains)
            axes.scatter([value], [y], s=52, color=colour, marker=marker, edgecolor=PAPER, linewidth=0.8, zorder=3)


def _decades(axes: Axes) -> None:
    """Ticks at powers of ten, written as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.xaxis.set_major_locator(LogLocator(base=10, numticks=7))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6f}".rstrip("0").rstrip(".")))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", length=0)


def _legend_axes(figure: Figure, width: int) -> Axes:
    axes = place(figure, 8, 0, width - 16, 24)
    axes.set_xlim(0, width - 16)
    axes.set_ylim(-1, 1)
    axes.set_axis_off()
    return axes


def _legend(figure: Figure, width: int, names: Sequence[str]) -> None:
    axes = _legend_axes(figure, width)
    x = 8.0
    for number_, name in enumerate(names):
        colour, marker = series(number_)
        axes.scatter([x], [0], s=44, color=colour, marker=marker)
        axes.text(x + 10, 0, name, va="center", color=INK)
        x += 32 + 6.6 * len(name)


def _domain_sheet(shown: Sequence[Fidelity], domains: Sequence[str]) -> Sheet:
    rows = tuple(
        (
            named(row.variant),
            number(row.values.get("mean_kld"), wording.nats(row.values.get("mean_kld"))),
            named(bounds(row.interval, wording.nats)),
            *(number(row.domains.get(domain), wording.nats(row.domains.get(domain))) for domain in domains),
        )
        for row in shown
    )
    return Sheet(
        caption="Mean KLD, nats a token",
        heads=heads("variant", "all", "95 %", *(one_line(domain) for domain in domains)),
        rows=rows,
    )


# ---------------------------------------------------------------------------------------------------------- memory


def draw_memory(run: Run) -> Picture | None:
    """Peak memory of each variant, its KV cache beside it; None where no memory was measured."""
    found = {
        result.variant.name: {m.metric: m.value for m in result.measurements if m.scope == ALL and m.value is not None}
        for result in run.variants
    }
    shown = {name: has for name, has in found.items() if "peak_rss_bytes" in has or "peak_device_bytes" in has}
    if not shown:
        return None
    names = [one_line(name, 24) for name in shown]
    device = any("peak_device_bytes" in has for has in shown.values())
    metrics = ["peak_rss_bytes", *(["peak_device_bytes"] if device else []), "kv_cache_bytes"]
    labels = [wording.metric_name(metric) for metric in metrics]

    def paint(figure: Figure, width: int) -> None:
        left = room_for(names)
        axes = place(figure, left, 30, width - left - 64, _ROW * len(names) * len(metrics) / 2)
        label_rows(axes, names)
        axes.set_xlim(0, max(has[metric] for has in shown.values() for metric in metrics if metric in has) / 1e6)
        for at, has in enumerate(shown.values()):
            _draw_memory(axes, at, [has.get(metric) for metric in metrics])
        axes.set_xlabel("MB")
        _bar_legend(figure, width, labels)

    told = [f"{one_line(name)} {_memory(has, metrics)}" for name, has in shown.items()]
    words = (
        f"Bar chart, memory of each variant: {'; '.join(told)}.",
        "The KV cache is computed from the model's shape and the context; on a CPU it lies within the resident memory.",
    )
    height = int(30 + _ROW * len(names) * len(metrics) / 2 + 46)
    rows = tuple(
        (named(name), *(number(has.get(metric), wording.size(has.get(metric))) for metric in metrics))
        for name, has in shown.items()
    )
    sheet = Sheet(caption="Highest over the launches", heads=heads("variant", *labels), rows=rows)
    return picture("memory", "Memory", words, paint, sheet, heights=(height, height))


def _memory(has: dict[str, float], metrics: Sequence[str]) -> str:
    return ", ".join(f"{wording.metric_name(metric)} {wording.size(has.get(metric))}" for metric in metrics)


def _bar_style(number_: int, total: int) -> dict[str, Any]:
    """The KV cache, which is last, is hollow; the others are filled."""
    if number_ == total - 1:
        return {"facecolor": PAPER, "edgecolor": SERIES[1][0], "linewidth": 1.5}
    return {"facecolor": SERIES[2 * number_][0], "edgecolor": SERIES[2 * number_][0], "linewidth": 1.5}


def _draw_memory(axes: Axes, at: int, values: Sequence[float | None]) -> None:
    high = 0.8 / len(values)
    for number_, value in enumerate(values):
        y = at - 0.4 + high * (number_ + 0.5)
        if value is None:
            _beside(axes, 0, y, "not measured", MUTED)
            continue
        axes.barh([y], [value / 1e6], height=high * 0.86, zorder=2, **_bar_style(number_, len(values)))
        _beside(axes, value / 1e6, y, wording.size(value), INK)


def _beside(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.annotate(
        text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", color=colour, fontsize=10.5,
        annotation_clip=False,
    )  # fmt: skip


def _bar_legend(figure: Figure, width: int, labels: Sequence[str]) -> None:
    axes = _legend_axes(figure, width)
    x = 2.0
    for number_, label in enumerate(labels):
        axes.barh([0], [18], left=[x], height=0.8, **_bar_style(number_, len(labels)))
        axes.text(x + 24, 0, label, va="center", color=INK)
        x += 44 + 6.8 * len(label)
