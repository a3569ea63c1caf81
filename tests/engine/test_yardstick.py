"""The neutral kernel: it tells rates, and a launch keeps their median."""

from __future__ import annotations

from suite.engine.yardstick import YardstickKernel, summarize
from suite.records import Yardstick


def test_a_reading_is_two_plausible_rates() -> None:
    reading = YardstickKernel().read()
    assert 1e7 < reading.hash_bytes_s < 1e11
    assert 1e7 < reading.copy_bytes_s < 1e12


def test_a_launch_keeps_the_median_of_its_readings() -> None:
    readings = [Yardstick(hash_bytes_s=rate, copy_bytes_s=10 * rate) for rate in (1.0, 100.0, 3.0)]
    assert summarize(readings) == Yardstick(hash_bytes_s=3.0, copy_bytes_s=30.0)
    assert summarize([]) is None
