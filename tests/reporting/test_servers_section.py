"""What a report says of servers: their figures beside the client's, and where the two do not fit together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import sample_runs, sample_served

from suite.reporting import markdown
from suite.reporting.model import build_report
from suite.reporting.page.render import render_page
from suite.reporting.page.servers import servers_sheet
from suite.reporting.servers import cells, difference, measured_servers, servers_markdown
from suite.reporting.terminal import lines

ROWS = measured_servers(sample_served.served())
APART = (
    "q5_k_m: its client saw 142 tok/s, and by its log the server decoded 171 tok/s (−17.0 %); what is judged is what the "
    "client saw"
)


def test_a_row_for_each_server_and_no_number_for_what_it_does_not_tell() -> None:
    assert [cells(row) for row in ROWS] == [
        ("q8_0", "164", "165 (metrics)", "−0.7 %", "0.021 ms", "1.00", "2 % of 16384 tokens", "0", "0 %", "0"),
        ("q5_k_m", "142", "171 (log)", "−17.0 %", "0.021 ms", "3.50", "–", "–", "–", "3"),
        ("q4_k_m", "173", "–", "–", "0.021 ms", "1.00", "–", "–", "–", "0"),
    ]
    assert "–: not told." in "\n".join(servers_markdown(ROWS))


def test_where_client_and_server_are_apart_one_sentence_says_so() -> None:
    assert [row.disagreement for row in ROWS if row.disagreement] == [APART]
    section = "\n".join(servers_markdown(ROWS))
    assert section.count("what is judged is what the client saw") == 1
    assert section.splitlines()[-1].startswith("- q5\\_k\\_m: its client saw 142 tok/s")


def test_the_end_of_a_run_says_it_once() -> None:
    told = list(lines(build_report(sample_served.served()), width=400, color=False))
    assert [line for line in told if "142 tok/s" in line] == [
        "   decode rate of client and server of q5_k_m: 142 tok/s for the client, 171 by the server's log: 17 % less → look at "
        "what lies between them: a proxy or a buffer that holds chunks back, or too little CPU for the client"
    ]


def test_the_page_has_the_same_cells_and_the_sentence() -> None:
    sheet = servers_sheet(ROWS)
    assert sheet is not None
    assert [tuple(cell.text for cell in row) for row in sheet.rows] == [cells(row) for row in ROWS]
    assert [cell.sort for cell in sheet.rows[2]][2:4] == [None, None]
    page = render_page(sample_served.served())
    assert APART in page
    assert page.count("<h3>Servers</h3>") == 1


def test_a_run_without_a_server_says_nothing_of_one() -> None:
    run = sample_runs.run()
    assert measured_servers(run) == ()
    assert servers_sheet(()) is None
    assert "## Servers" not in markdown.render(build_report(run))
    assert "<h3>Servers</h3>" not in render_page(run)


def test_what_a_variant_is_called_cannot_break_the_table() -> None:
    bad = "x|<b>`\x1b[2J"
    result = sample_served.served_result("q5_k_m", sample_served.SLOWED)
    hostile = replace(result, variant=replace(result.variant, name=bad))
    section = list(servers_markdown(measured_servers(sample_runs.run([hostile]))))
    assert {line.replace("\\|", "").count("|") for line in section if line.startswith("|")} == {11}
    assert "\x1b" not in "".join(section)


@pytest.mark.parametrize(
    ("share", "told"), [(None, "–"), (0.0, "0.0 %"), (-0.0001, "0.0 %"), (0.0512, "+5.1 %"), (-0.4, "−40.0 %")]
)
def test_a_difference_has_a_sign_unless_there_is_none(share: float | None, told: str) -> None:
    assert difference(share) == told
