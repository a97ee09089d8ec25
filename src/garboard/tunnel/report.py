"""What `tunnel status` and `tunnel trace` print, made from what an admin port answered."""

from collections.abc import Iterable, Sequence
from typing import Any


def status_text(document: Any) -> str:
    """The answer of `/status` for people."""
    lines = _agent_lines(document) if document.get("end") == "agent" else _server_lines(document)
    return "\n".join([*lines, ""])


def trace_text(document: Any) -> str:
    """The answer of `/trace` for people: a line for every hop, and the verdict."""
    rows = [("HOP", "VERDICT", "MS", "WHERE")]
    rows += [
        (each["hop"], each["verdict"], "" if each["ms"] is None else f"{each['ms']:.1f}", each["detail"])
        for each in document["hops"]
    ]
    verdict = "is open" if document["isOpen"] else "is not open"
    return "\n".join([*_table(rows), f"the way to {document['to']} {verdict}", ""])


def _server_lines(document: Any) -> Iterable[str]:
    yield f"server {document['id']}"
    file = document.get("tenantsFile")
    if file and file["problem"]:
        yield f"{file['path']} is not in use as it is now: {file['problem']}"
    if document.get("workers"):
        yield from _table([("WORKER", "PID", "STATE", "AGENTS", "RESTARTS"), *_worker_rows(document["workers"])])
    for tenant in document["tenants"]:
        yield ""
        named = f"tenant {tenant['name']} ({', '.join(tenant['serverNames'])})" if tenant["name"] else "cluster"
        yield f"{named}: {'ready' if tenant['isReady'] else 'not ready'}, {tenant['mode']} on {tenant['front']}"
        counts, queued = tenant["connections"], tenant["queuedBytes"]
        yield (f"connections: {counts['toNodes']} to nodes, {counts['pendingDials']} dials pending, "
               f"{counts['fromNodes']} from nodes; queued: {queued['toClients']} B to clients, "
               f"{queued['toAgents']} B to agents")  # fmt: skip
        yield f"agents are known by: {tenant['authentication']}; nodes may reach: {tenant['allowedDestinations']}"
        yield f"denied: {_counts(tenant['denials'])}; failed dials: {_counts({'': tenant['dialFailures']})}"
        yield from _table([("AGENT", "FROM", "IDENTIFIERS", "CONNECTIONS", "QUEUED", "STATE"), *_agent_rows(tenant)])


def _worker_rows(workers: Any) -> Iterable[tuple[str, ...]]:
    for each in workers:
        yield (each["id"], str(each["pid"] or "-"), each["state"], str(each["agents"]), str(each["restarts"]))


def _agent_rows(tenant: Any) -> Iterable[tuple[str, ...]]:
    for agent in tenant["agents"]:
        names = [*agent["identifiers"]["hosts"], *(["default-route"] if agent["identifiers"]["isDefaultRoute"] else [])]
        state = ["draining"] if agent["isDraining"] else ["stock"] if not agent["isOurs"] else []
        state += [f"refused: {', '.join(agent['refusedTargets'])}"] if agent["refusedTargets"] else []
        yield (agent["id"], agent["from"], ",".join(names) or "-", str(agent["connections"]),
               f"{agent['queuedBytes']} B", "; ".join(state) or "ok")  # fmt: skip


def _agent_lines(document: Any) -> Iterable[str]:
    counts = document["connections"]
    yield f"agent {document['id']}{', draining' if document['isDraining'] else ''}"
    yield f"identifiers: {document['identifiers'] or '-'}"
    yield f"servers: {len(document['servers'])} of {document['wantedServers']}"
    yield f"connections: {counts['toNodes']} to endpoints, {counts['fromNodes']} of this node"
    rows = [("SERVER", "CONNECTIONS", "QUEUED", "STATE")]
    for server in document["servers"]:
        state = "draining" if server["isDraining"] else "ok" if server["isOurs"] else "stock"
        state += f"; refused: {', '.join(server['refusedTargets'])}" if server["refusedTargets"] else ""
        rows.append((server["id"], str(server["connections"]), f"{server['queuedBytes']} B", state))
    yield from _table(rows)
    if document["targets"]:
        shown = [(each["target"], each["bindAddress"], each["problem"] or "ok") for each in document["targets"]]
        yield from _table([("TARGET", "LISTENS ON", "STATE"), *shown])


def _counts(groups: Any) -> str:
    found = [
        f"{count} {group + ' ' if group else ''}({reason})"
        for group, reasons in groups.items()
        for reason, count in reasons.items()
    ]
    return ", ".join(found) or "none"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
