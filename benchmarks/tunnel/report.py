"""The figures as a table, each pair beside the stock one, with the goals."""

Found = dict[str, float]

# Measure: the goal of the ratio ours/stock, and whether more is better.
GOALS = {
    "bulk down, 1 streams, MB/s": (1.5, True),
    "bulk down, 32 streams, MB/s": (1.5, True),
    "bulk up, 1 streams, MB/s": (2.0, True),
    "bulk up, 32 streams, MB/s": (2.0, True),
    "echo, 1 connections, p99 us": (1.25, False),
    "echo, 64 connections, p99 us": (0.6, False),
    "echo, 1 connections, per s": (1.0, True),
    "echo, 64 connections, per s": (1.0, True),
    "connects per s": (1.2, True),
    "handshakes per s": (1.0, True),
    "memory, empty, MB": (1.0, False),
    "memory, 1000 idle, MB in all": (1.0, False),
    "memory, 10000 idle, MB in all": (1.0, False),
}
STALL = "stall, times worse"
STALL_GOAL = 1.5
MIXED_GOAL = 0.8


def write_report(found: dict[str, Found], conditions: str) -> str:
    pairs = list(found)
    more = [pair for pair in pairs if pair.startswith("ours:") or pair == "compiled"]  # ours in another way
    heads = " | ".join((*pairs, *(f"{pair} / stock" for pair in more)))
    rows = [f"{conditions}.", "", f"| measure | {heads} | ours / stock | goal | |"]
    rows.append(f"| --- |{' ---: |' * (len(pairs) + len(more) + 2)} --- |")
    for name in dict.fromkeys(name for each in found.values() for name in each):
        figures = [_figure(found[pair].get(name)) for pair in pairs]
        ratios = [_ratio(found[pair].get(name), found.get("stock", {}).get(name)) for pair in more]
        rows.append(f"| {name} | {' | '.join((*figures, *ratios, *_verdict(name, found)))} |")
    return "\n".join([*rows, "", *_mixed(found), ""])


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    if value == float("inf"):
        return "none answered"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _ratio(value: float | None, stock: float | None) -> str:
    return f"{value / stock:.2f}" if value is not None and stock else ""


def _verdict(name: str, found: dict[str, Found]) -> tuple[str, str, str]:
    ours, stock = found.get("ours", {}).get(name), found.get("stock", {}).get(name)
    if name == STALL and ours is not None:
        return "", f"<= {STALL_GOAL} itself", _met(ours <= STALL_GOAL)
    if ours is None or not stock:
        return "", "", ""
    ratio = ours / stock
    if name not in GOALS:
        return f"{ratio:.2f}", "", ""
    goal, more_is_better = GOALS[name]
    is_met = ratio >= goal if more_is_better else ratio <= goal
    return f"{ratio:.2f}", f"{'>=' if more_is_better else '<='} {goal}", _met(is_met)


def _mixed(found: dict[str, Found]) -> list[str]:
    """One of ours with a stock peer: bulk beside the stock pair."""
    out = []
    for pair in ("ours-stock", "stock-ours"):
        for name, value in found.get(pair, {}).items():
            stock = found.get("stock", {}).get(name)
            if "MB/s" in name and stock:
                ratio = value / stock
                verdict = f"goal {MIXED_GOAL}, {_met(ratio >= MIXED_GOAL)}"
                out.append(f"- {pair}: {name}: {ratio:.2f} of the stock pair ({verdict})")
    return out


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"
