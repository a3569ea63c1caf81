"""A slope that single stalls cannot move."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def theil_sen(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Median of the slopes between all pairs of points; 0.0 for fewer than two different `xs`.

    Source: P. K. Sen, Journal of the American Statistical Association 63 (1968).
    """
    points = list(zip(xs, ys, strict=True))
    slopes = [
        (y2 - y1) / (x2 - x1) for index, (x1, y1) in enumerate(points) for x2, y2 in points[index + 1 :] if x1 != x2
    ]
    return statistics.median(slopes) if slopes else 0.0
