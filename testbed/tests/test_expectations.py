"""Expectations compared with a summary."""

from testbed.campaigns.expectations import compare
from testbed.campaigns.experiment import Expectation


def row(hops, mean, ns2, variant="ns2", metric="acked_kbps"):
    return {"hops": hops, "variant": variant, "metric": metric, "mean": mean, "ns2": ns2, "published": None}


EXPECT = Expectation(variants=("ns2",), within_percent=7)
PERIOD = {"ns2": "period", "hv": "period"}


def test_it_passes_when_every_cell_is_within_and_names_the_farthest():
    summary = [row(1, 1000, 1020), row(2, 530, 500), row(2, 1, 500, variant="hv"), row(2, 1, 2, metric="rtt_ms_mean")]
    (result,) = compare([EXPECT], summary, ["hops"], PERIOD)
    assert result.ok
    assert result.line() == ("pass  acked_kbps (ns2) within 7 % of ns2: all 2 cells, the farthest +6.0 % (ns2, hops 2)")


def test_it_fails_with_every_cell_that_is_away():
    (result,) = compare([EXPECT], [row(1, 1000, 1000), row(2.0, 400, 500), row(3, 550, 500)], ["hops"], PERIOD)
    assert result.ok is False
    assert result.line() == (
        "FAIL  acked_kbps (ns2) within 7 % of ns2: 2 of 3 cells are not: ns2, hops 2: -20.0 %; ns2, hops 3: +10.0 %"
    )


def test_without_anything_to_compare_it_neither_passes_nor_fails():
    (result,) = compare([EXPECT], [row(1, None, 1000), row(2, 5, None)], ["hops"], PERIOD)
    assert result.ok is None
    assert result.detail == "no cell has both a result and a number from ns2"


def test_what_is_expected_of_the_papers_tcp_is_not_asked_of_todays():
    (result,) = compare([EXPECT], [row(1, 2000, 1000)], ["hops"], {"ns2": "modern"})
    assert result.ok is None
    assert result.detail == 'nothing was run with profile "period", for which this is expected'


def test_a_profile_that_is_an_axis_counts_row_by_row():
    summary = [row(1, 1000, 1000) | {"profile": "period"}, row(1, 2000, 1000) | {"profile": "modern"}]
    both = [EXPECT, EXPECT.model_copy(update={"profile": "modern"})]
    assert [result.ok for result in compare(both, summary, ["profile"], PERIOD)] == [True, False]


def test_at_quick_size_the_wider_bound_counts_and_is_the_one_printed():
    expectation = EXPECT.model_copy(update={"quick_within_percent": 12})
    summary = [row(1, 1100, 1000)]
    for quick, ok, bound in [(True, True, "within 12 %"), (False, False, "within 7 %")]:
        (result,) = compare([expectation.of_size(quick)], summary, ["hops"], PERIOD)
        assert result.ok is ok and bound in result.text
    assert EXPECT.of_size(quick=True) == EXPECT
