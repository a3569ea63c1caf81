"""What the CPUs give: plausible rates, of a buffer of the size that was asked for."""

from __future__ import annotations

import pytest

from suite.backends.base import DeviceRates
from suite.worker.messages import Failed, Load, Probe, Probed, pack, unpack
from suite.worker.probing import CpuProbe
from suite.worker.process import Worker
from suite.worker.serve import Server


@pytest.mark.parametrize("threads", [1, 2])
def test_a_reading_is_two_plausible_rates(threads: int) -> None:
    probe = CpuProbe(threads)
    reading = probe.read(8 << 20)
    probe.close()
    assert (reading.device, reading.threads, reading.flop_type) == ("cpu", threads, "float32")
    assert reading.size_bytes == 8 << 20
    assert 1e8 < reading.read_bytes_s < 1e13
    assert 1e8 < reading.flop_s < 1e14


def test_the_buffer_grows_and_shrinks_with_what_is_asked() -> None:
    probe = CpuProbe(2)
    assert [probe.read(size).size_bytes for size in (1 << 20, 4 << 20, 1 << 16)] == [1 << 20, 4 << 20, 1 << 16]
    probe.close()


def test_a_worker_without_a_model_probes_its_cpus() -> None:
    with Worker("probe", cpus=()) as worker:
        answer = worker.ask(Probe(size_bytes=1 << 20, threads=1), 60.0)
    assert isinstance(answer, Probed)
    assert (answer.device, answer.threads, answer.size_bytes) == ("cpu", 1, 1 << 20)


class Accelerated:
    """Only what is asked of it here."""

    def probe(self, size_bytes: int) -> DeviceRates:
        return DeviceRates(
            device="cuda:0", threads=0, size_bytes=size_bytes, read_bytes_s=3e12, flop_s=5e14, flop_type="float16"
        )


def test_a_model_that_knows_its_device_is_asked() -> None:
    server = Server()
    server._model = Accelerated()  # type: ignore[assignment]
    answer = server.answer(Probe(size_bytes=99, threads=2))
    assert answer == Probed(
        device="cuda:0", threads=0, size_bytes=99, read_bytes_s=3e12, flop_s=5e14, flop_type="float16"
    )
    assert unpack(pack(answer)) == answer


def test_a_model_that_does_not_is_never_probed_on_other_devices() -> None:
    server = Server()
    server.answer(Load(backend="fake", weights=None, options={}, prompt_format="chat"))
    answer = server.answer(Probe(size_bytes=99, threads=2))
    assert isinstance(answer, Failed)
    assert answer.kind == "unavailable"
