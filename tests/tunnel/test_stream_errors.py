"""Errors of streams, by the names that stock dashboards ask for."""

from garboard.rpc import Status, StatusCode
from garboard.tunnel.metrics import Metrics
from garboard.tunnel.stream_errors import StreamErrors


def test_failures_are_counted_under_go_names_and_good_ends_are_not() -> None:
    errors = StreamErrors()
    for code in (StatusCode.OK, StatusCode.CANCELLED, StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED):
        errors.ended("from_agent", Status(code))
    rows = Metrics("x_", {"stream_errors_total": ("Errors.", errors.counter)}).text().splitlines()[2:]
    assert rows == [
        f'x_stream_errors_total{{segment="from_agent",code="{name}",packet_type="Unknown"}} 1'
        for name in ("Canceled", "ResourceExhausted", "Unavailable")
    ]
