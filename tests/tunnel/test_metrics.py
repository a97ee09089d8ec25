from garboard.rpc import Status, StatusCode
from garboard.tunnel.metrics import LATENCY_BUCKETS, Counter, Gauge, Histogram, Metrics, StreamErrors


def test_families_are_written_as_prometheus_reads_them() -> None:
    counter = Counter("reason")
    counter.of('a"b').value += 2
    histogram = Histogram((0.5, 1.0))
    for value in (0.1, 0.5, 0.7, 9):
        histogram.observe(value)
    metrics = Metrics("p_", {"c": ("Things.", counter), "g": ("State.", Gauge(lambda: 3)), "h": ("Times.", histogram)})
    assert metrics.text() == (
        '# HELP p_c Things.\n# TYPE p_c counter\np_c{reason="a\\"b"} 2\n'
        "# HELP p_g State.\n# TYPE p_g gauge\np_g 3\n"
        '# HELP p_h Times.\n# TYPE p_h histogram\np_h_bucket{le="0.5"} 2\np_h_bucket{le="1"} 3\n'
        'p_h_bucket{le="+Inf"} 4\np_h_sum 10.3\np_h_count 4\n'
    )


def test_buckets_are_labelled_as_in_go() -> None:
    lines = Histogram(LATENCY_BUCKETS).lines("x")
    assert [line.split('"')[1] for line in lines[1:11]] == [
        "1e-06", "1e-05", "0.0001", "0.005", "0.025", "0.1", "0.5", "2.5", "12.5", "+Inf",
    ]  # fmt: skip


def test_failures_are_counted_under_go_names_and_good_ends_are_not() -> None:
    errors = StreamErrors()
    for code in (StatusCode.OK, StatusCode.CANCELLED, StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED):
        errors.ended("from_agent", Status(code))
    rows = Metrics("x_", {"stream_errors_total": ("Errors.", errors.counter)}).text().splitlines()[2:]
    assert rows == [
        f'x_stream_errors_total{{segment="from_agent",code="{name}",packet_type="Unknown"}} 1'
        for name in ("Canceled", "ResourceExhausted", "Unavailable")
    ]
