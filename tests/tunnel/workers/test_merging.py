"""The pages of several workers as one."""

from typing import Any

from garboard.tunnel.metrics import Counter, Gauge, Histogram, Metrics, Total
from garboard.tunnel.report import status_text
from garboard.tunnel.workers.merging import families_text, growing, merge_families, merge_status, read_families

NOTHING: dict[str, Any] = {"toNodes": 0, "pendingDials": 0, "fromNodes": 0}


def page(dials: int, agents: int, seconds: float) -> str:
    counter, histogram = Counter("reason"), Histogram((0.1, 1.0))
    counter.of('a "quoted" } reason').value = dials
    histogram.observe(seconds)
    return Metrics(
        "x_",
        {
            "dials_total": ("Dials.", counter),
            "ready_backends": ("Agents.", Gauge(lambda: {"default": agents}, "proxy_strategy")),
            "open": ("Open.", Gauge(lambda: dials / 4)),
            "stalled_total": ("Stalled.", Total(lambda: 12_345_678)),
            "seconds": ("How long.", histogram),
        },
    ).text()


def test_metrics_are_summed_and_agents_are_not_counted_twice() -> None:
    merged = families_text(merge_families(map(read_families, (page(1, 3, 0.05), page(2, 2, 0.5)))))
    assert merged.splitlines() == [
        "# HELP x_dials_total Dials.",
        "# TYPE x_dials_total counter",
        'x_dials_total{reason="a \\"quoted\\" } reason"} 3',
        "# HELP x_ready_backends Agents.",
        "# TYPE x_ready_backends gauge",
        'x_ready_backends{proxy_strategy="default"} 3',
        "# HELP x_open Open.",
        "# TYPE x_open gauge",
        "x_open 0.75",
        "# HELP x_stalled_total Stalled.",
        "# TYPE x_stalled_total counter",
        "x_stalled_total 24691356",
        "# HELP x_seconds How long.",
        "# TYPE x_seconds histogram",
        'x_seconds_bucket{le="0.1"} 1',
        'x_seconds_bucket{le="1"} 2',
        'x_seconds_bucket{le="+Inf"} 2',
        "x_seconds_sum 0.55",
        "x_seconds_count 2",
    ]


def test_one_page_stays_as_it_is() -> None:
    text = page(7, 1, 0.05)
    assert families_text(merge_families([read_families(text)])) == text


def test_merging_changes_none_of_its_parts() -> None:
    part = read_families(page(1, 1, 0.05))
    merge_families([part, part])
    assert families_text(part) == page(1, 1, 0.05)


def test_what_a_worker_counted_stays_when_it_is_gone_and_what_it_had_does_not() -> None:
    kept = growing(read_families(page(5, 4, 0.05)))
    merged = merge_families([read_families(page(1, 1, 0.05)), kept])
    assert merged["x_dials_total"].samples == {'x_dials_total{reason="a \\"quoted\\" } reason"}': 6}
    assert merged["x_open"].samples == {"x_open": 0.25}
    assert merged["x_seconds"].samples["x_seconds_count"] == 2


def tenant(name: str, *agents: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "serverNames": [], "front": "/f", "mode": "grpc", "allowedDestinations": "nothing",
        "authentication": "none", "isReady": bool(agents), "agents": list(agents), "connections": NOTHING,
        "queuedBytes": {"toClients": 1, "toAgents": 2}, "denials": {"agents": {"token": 1}, "destinations": {}},
        "dialFailures": {}, **changes,
    }  # fmt: skip


def agent(name: str, connections: int, **changes: Any) -> dict[str, Any]:
    identifiers = {"hosts": [], "isDefaultRoute": False}
    return {
        "id": name, "from": "10.0.0.1:1", "identity": f"CN={name}", "identifiers": identifiers, "isDraining": False,
        "isOurs": True, "connections": connections, "pendingDials": 0, "queuedBytes": 5, "refusedTargets": [],
        **changes,
    }  # fmt: skip


def test_status_shows_each_agent_once_with_all_of_its_streams() -> None:
    parts = [
        {"tenants": [tenant("a", agent("n1", 2), agent("n2", 1), dialFailures={"no_agent": 1}), tenant("b")]},
        {"tenants": [tenant("a", agent("n1", 3, isDraining=True), dialFailures={"no_agent": 2}), tenant("b")]},
    ]
    workers: Any = [{"id": "s-0", "pid": 7, "state": "running", "agents": 2, "restarts": 1}]
    merged: Any = merge_status("s", parts, workers, None)
    a, b = merged["tenants"]
    assert [(each["id"], each["connections"], each["queuedBytes"], each["streams"]) for each in a["agents"]] == [
        ("n1", 5, 10, 2),
        ("n2", 1, 5, 1),
    ]
    assert [each["isDraining"] for each in a["agents"]] == [True, False]
    assert a["dialFailures"] == {"no_agent": 3}
    assert a["queuedBytes"] == {"toClients": 2, "toAgents": 4}
    assert a["denials"] == {"agents": {"token": 2}, "destinations": {}}
    assert (a["isReady"], b["isReady"]) == (True, False)
    text = status_text(merged)
    assert "s-0     7    running  2       1" in text
    assert text.count("n1 ") == 1


def test_status_of_a_server_whose_workers_are_all_away_is_a_status() -> None:
    merged: Any = merge_status("s", [], [], {"path": "/t.yaml", "problem": "bad"})
    assert merged["tenants"] == []
    assert "bad" in status_text(merged)
