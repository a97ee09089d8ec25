"""A dashboard as HTML: the whole page, and the part of it that changes.

Every text of an object is escaped, nothing is loaded from elsewhere, and no style or script stands in the page itself,
so that the strictest policy holds (`garboard.node.fleet.dashboard` sends it).
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from garboard.documents.html_text import html_text
from garboard.fleet.controllers.stored import write_time
from garboard.fleet.dashboard.overview import DashboardQuery, Listed, Overview, RowT
from garboard.fleet.dashboard.rows import MEANINGS, ClaimRow, ClusterRow, ClusterStage, FailureRow, PoolRow, short

_NOTHING: Final = "–"
_ICON: Final = "data:,"  # so that no browser asks for one


def dashboard_page(overview: Overview | None, tag: str = "", *, server: str = "") -> str:
    """Return the whole page; without an overview it has the form by which a viewer signs in, and nothing of the fleet.

    `tag` is that of the fragment in it, `server` is named above it.
    """
    shown = overview.shown if overview is not None else DashboardQuery()
    body = "".join(
        (*_header(shown, server, is_signed_in=overview is not None), *_sign_in(is_hidden=overview is not None))
    )
    live = fragment(overview) if overview is not None else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<title>Fleet</title>\n'
        f'<link rel="icon" href="{_ICON}">\n<link rel="stylesheet" href="dashboard.css">\n'
        f'<script src="dashboard.js" defer></script>\n</head>\n<body>\n{body}'
        f'<main id="live" data-tag="{html_text(tag)}">\n{live}</main>\n</body>\n</html>\n'
    )


def _header(shown: DashboardQuery, server: str, *, is_signed_in: bool) -> Iterator[str]:
    yield '<header>\n<div class="title"><h1>Fleet</h1>'
    where = " · ".join(each for each in (server, f"namespace {shown.namespace}" if shown.namespace else "") if each)
    yield f'<p class="where">{html_text(where)}</p>' if where else ""
    yield '<p id="state" role="status" data-state="still">as it was when this page was loaded</p></div>\n'
    yield f'<form id="narrow" method="get" role="search"{"" if is_signed_in else " hidden"}>\n'
    yield from (
        f'<input type="hidden" name="{name}" value="{html_text(value)}">'
        for name, value in (("pool", shown.pool), ("stage", shown.stage))
        if value
    )
    yield '<label for="text">Find</label> <input id="text" name="text" type="search" autocomplete="off" '
    yield f'spellcheck="false" placeholder="cluster, claim, pool" value="{html_text(shown.text)}">'
    yield ' <button id="find">Find</button> <button id="sign-out" type="button" hidden>Sign out</button>\n</form>\n'
    yield "</header>\n"


def _sign_in(*, is_hidden: bool) -> Iterator[str]:
    yield f'<form id="sign-in" method="get"{" hidden" if is_hidden else ""}>\n<h2>Sign in</h2>\n'
    yield '<p id="refusal" role="alert" hidden></p>\n'
    yield "<p>With a token that the API server accepts, such as one that <code>kubectl create token ACCOUNT</code> "
    yield "prints. It stays in this tab, and is sent nowhere else.</p>\n"
    yield '<label for="token">Token</label>\n<input id="token" type="password" autocomplete="off" spellcheck="false">\n'
    yield "<button>Sign in</button>\n<noscript><p>This needs JavaScript.</p></noscript>\n</form>\n"


def fragment(overview: Overview) -> str:
    """Return the part of the page that changes with the fleet."""
    return "".join(
        (*_troubles(overview), *_stages(overview), *_pools(overview), *_failures(overview), *_claims(overview),
         *_clusters(overview))
    )  # fmt: skip


def _troubles(overview: Overview) -> Iterator[str]:
    if overview.troubles:
        yield '<section class="troubles" role="alert">\n<h2>This may be out of date</h2>\n<ul>\n'
        yield from (f"<li>{html_text(each)}</li>\n" for each in overview.troubles)
        yield "</ul>\n</section>\n"


def _stages(overview: Overview) -> Iterator[str]:
    shown, total = overview.shown, sum(number for _, number in overview.stages)
    yield '<nav class="stages" aria-label="Clusters by stage">\n'
    yield _chip(
        "all", total, DashboardQuery(pool=shown.pool, text=shown.text), "Clusters at all stages", not shown.stage
    )
    counts = dict(overview.stages)
    for stage in ClusterStage:
        if stage in counts or stage == shown.stage:
            wanted = DashboardQuery(pool=shown.pool, text=shown.text, stage=stage)
            yield _chip(stage, counts.get(stage, 0), wanted, MEANINGS[stage], shown.stage == stage)
    yield "</nav>\n"
    yield _bar(overview.stages, total)
    if shown.pool or shown.stage or shown.text:
        said = [f"pool {shown.pool}"] if shown.pool else []
        said += [f"stage {shown.stage}"] if shown.stage else []
        said += [f"with “{shown.text}” in a name"] if shown.text else []
        whole = f'<a href="{_link(DashboardQuery())}">Show all</a>'
        yield f'<p class="narrowed">Only {html_text(", ".join(said))}. {whole}</p>\n'


def _chip(name: str, number: int, wanted: DashboardQuery, meaning: str, is_current: bool) -> str:
    current = ' aria-current="true"' if is_current else ""
    return (
        f'<a class="chip {name}" href="{_link(wanted)}" title="{html_text(meaning)}"{current}>'
        f'<span class="number">{number:,}</span> <span class="name">{name}</span></a>\n'
    )


def _bar(stages: Iterable[tuple[ClusterStage, int]], total: int) -> str:
    """Return how clusters are distributed over stages, as a bar; the numbers stand beside it."""
    if not total:
        return ""
    parts, start = [], 0
    for stage, number in stages:
        parts.append(f'<rect class="{stage}" x="{start}" y="0" width="{number}" height="1"></rect>')
        start += number
    return (
        f'<svg class="bar" viewBox="0 0 {max(total, start)} 1" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>\n"
    )


def _link(wanted: DashboardQuery) -> str:
    pairs = (("pool", wanted.pool), ("stage", str(wanted.stage)), ("text", wanted.text))
    return html_text("?" + urlencode({name: value for name, value in pairs if value}))


def _section(
    title: str, id_: str, listed: Listed[RowT], columns: tuple[str, ...], rows: Iterable[str]
) -> Iterator[str]:
    yield f'<section id="{id_}">\n<h2>{title} <span class="count">{listed.total:,}</span></h2>\n'
    if not listed.rows:
        yield '<p class="none">none</p>\n'
    else:
        yield "<table>\n<thead><tr>"
        yield from (f'<th scope="col">{each}</th>' for each in columns)
        yield "</tr></thead>\n<tbody>\n"
        yield from rows
        yield "</tbody>\n</table>\n"
        yield _left(listed)
    yield "</section>\n"


def _left(listed: Listed[RowT]) -> str:
    return f'<p class="left">and {listed.left:,} more: narrow the page down</p>\n' if listed.left else ""


def _cell(label: str, content: str, kind: str = "") -> str:
    kinds = " ".join(each for each in (kind, "empty" if content == _NOTHING else "") if each)
    css = f' class="{kinds}"' if kinds else ""
    return f'<td data-label="{label}"{css}><div>{content}</div></td>'


def _pools(overview: Overview) -> Iterator[str]:
    columns = ("Pool", "Ready", "Clusters", "Claims that wait", "Notes")
    yield from _section("Pools", "pools", overview.pools, columns, map(_pool, overview.pools.rows))


def _pool(row: PoolRow) -> str:
    name = f"{row.namespace}/{row.name}"
    ready, total = row.count(ClusterStage.READY), row.count(*ClusterStage)
    most = f' <span class="soft">of at most {row.most}</span>' if row.most is not None else ""
    numbers = " · ".join(f"{number}&nbsp;{stage}" for stage, number in row.stages)
    wrong = "".join(f"<li><b>{html_text(each.type)}</b> {html_text(short(each.message))}</li>" for each in row.troubles)
    going = ' <span class="badge deleting">deleting</span>' if row.is_deleting else ""
    is_short = "short" if ready < row.wanted and not row.is_deleting else ""
    return (
        f'<tr><th scope="row">{_qualified(row.namespace, row.name, _link(DashboardQuery(pool=name)))}{going}</th>'
        + _cell("Ready", f'<b>{ready}</b> <span class="soft">of {row.wanted}</span>', is_short)
        + _cell("Clusters", f'{total}{most}{_bar(row.stages, total)}<span class="soft">{numbers}</span>')
        + _cell("Claims that wait", str(row.waiting_claims) if row.waiting_claims else _NOTHING)
        + _cell("Notes", f"<ul>{wrong}</ul>" if wrong else _NOTHING, "note")
        + "</tr>\n"
    )


def _clusters(overview: Overview) -> Iterator[str]:
    columns = ("Cluster", "Stage", "Since", "Pool", "Claim", "Notes")
    yield from _section("Clusters", "clusters", overview.clusters, columns, map(_cluster, overview.clusters.rows))


def _cluster(row: ClusterRow) -> str:
    infra_id = f'<span class="soft under">{html_text(row.infra_id)}</span>' if row.infra_id else ""
    entry = f'<span class="soft under">entry {html_text(row.entry)}</span>' if row.entry else ""
    attempts = f' <span class="soft">after {row.attempts} failed</span>' if row.attempts else ""
    pool = f'<a href="{_link(DashboardQuery(pool=row.pool))}">{html_text(row.pool)}</a>' if row.pool else _NOTHING
    return (
        f'<tr><th scope="row">{_qualified(row.namespace, row.name)}{infra_id}</th>'
        + _cell("Stage", f"{_badge(row.stage)}{attempts}")
        + _cell("Since", _moment(row.since))
        + _cell("Pool", f"{pool}{entry}")
        + _cell("Claim", html_text(row.claim) or _NOTHING)
        + _cell("Notes", html_text(row.note) or _NOTHING, "note")
        + "</tr>\n"
    )


def _claims(overview: Overview) -> Iterator[str]:
    columns = ("Claim", "State", "Since", "Pool", "Cluster", "Until", "What it waits for")
    yield from _section("Claims", "claims", overview.claims, columns, map(_claim, overview.claims.rows))


def _claim(row: ClaimRow) -> str:
    kind = "waiting" if row.is_waiting else "claimed"
    return (
        f'<tr><th scope="row">{_qualified(row.namespace, row.name)}</th>'
        + _cell("State", f'<span class="badge {kind}">{html_text(row.state)}</span>')
        + _cell("Since", _moment(row.created))
        + _cell("Pool", f'<a href="{_link(DashboardQuery(pool=row.pool))}">{html_text(row.pool)}</a>')
        + _cell("Cluster", html_text(row.cluster) or _NOTHING)
        + _cell("Until", _moment(row.expires))
        + _cell("What it waits for", html_text(row.note) or _NOTHING, "note")
        + "</tr>\n"
    )


def _failures(overview: Overview) -> Iterator[str]:
    failures = overview.failures
    if not failures.rows:
        return
    yield f'<section id="failures">\n<h2>Failures <span class="count">{failures.total:,}</span></h2>\n'
    yield from map(_failure, failures.rows)
    yield f"{_left(failures)}</section>\n"


def _failure(row: FailureRow) -> str:
    attempt = f"attempt {row.attempt}" if row.attempt is not None else row.kind
    by_now = f'<span class="soft">the cluster is by now</span> {_badge(row.stage)}' if row.stage is not None else ""
    key = html_text(f"{row.kind}/{row.namespace}/{row.name}")
    parts = [
        f'<details data-key="{key}">\n<summary><b>{html_text(row.reason or "Failed")}</b> ',
        f"<span>{html_text(row.cluster)}</span> ",
        f'<span class="soft">{html_text(attempt)}, {_moment(row.failed_at)}</span></summary>\n',
        f'<p class="message">{html_text(row.message)}</p>\n<p>{by_now}</p>\n' if row.message or by_now else "",
    ]
    if row.log:
        query = urlencode({"kind": row.kind, "namespace": row.namespace, "name": row.name})
        said = "The log" if row.is_whole else "The end of the log"
        whole = "" if row.is_whole else f' <a class="whole" href="log?{html_text(query)}">The whole log</a>'
        parts.append(
            f'<p class="soft">{said} of {html_text(row.kind)} {html_text(f"{row.namespace}/{row.name}")}.{whole}</p>\n'
        )
        parts.append(f'<pre tabindex="0">{html_text(row.log)}</pre>\n')
    else:
        parts.append('<p class="soft">No log was kept.</p>\n')
    return "".join((*parts, "</details>\n"))


def _badge(stage: ClusterStage) -> str:
    return f'<span class="badge {stage}" title="{html_text(MEANINGS[stage])}">{stage}</span>'


def _qualified(namespace: str, name: str, link: str = "") -> str:
    """Return the name of an object; its namespace stands before it unless it is called the same."""
    before = f'<span class="soft">{html_text(namespace)}/</span>' if namespace != name else ""
    whole = f"{before}{html_text(name)}"
    return f'<a href="{link}">{whole}</a>' if link else whole


def _moment(moment: datetime | None) -> str:
    if moment is None:
        return _NOTHING
    return f'<time datetime="{write_time(moment)}">{moment:%Y-%m-%d %H:%M:%S} UTC</time>'
