"""A plan as one HTML file for a change ticket: no script, nothing loaded, and every text of others escaped.

It is made of the plan's document, so that a saved plan gives the same page as the plan itself.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from garboard.change.html_style import STYLE
from garboard.documents import Json
from garboard.documents.html_text import html_text

# Nothing is loaded and nothing runs, whatever a text of the plan says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_VERDICTS = {
    "none": "Nothing to do: the cluster is as it is asked for.",
    "allowed": "Allowed: nothing speaks against it.",
    "advice": "Advice: it can be done; read what is said about it.",
    "blocked": "Blocked: nothing is done while this stands.",
}
_MOST_NAMES = 12
_DIFF_CLASSES = (("+++", "name"), ("---", "name"), ("@@", "place"), ("+", "added"), ("-", "removed"))


def plan_html(document: Mapping[str, Json], *, cluster: str = "", made_at: str = "") -> str:
    """Return the page of a plan; `cluster` and `made_at` are shown above it, if they are known."""
    title = f"Change plan{f' for {cluster}' if cluster else ''}"
    body = "".join(_body(document, title, made_at))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html_text(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _body(document: Mapping[str, Json], title: str, made_at: str) -> Iterator[str]:
    verdict = _word(document.get("verdict"))
    yield f"<header>\n<h1>{html_text(title)}</h1>\n"
    yield f'<p class="verdict {_class(verdict)}">{html_text(_VERDICTS.get(verdict, verdict))}</p>\n'
    yield from _facts(document, made_at)
    yield "</header>\n"
    yield from _attributes(_items(document.get("attributes")))
    yield from _timeline(document)
    follow_ups = document.get("followUps")
    if isinstance(follow_ups, list) and follow_ups:
        yield "<section>\n<h2>Left for you to do</h2>\n<ul>\n"
        yield from (f"<li>{html_text(_word(each))}</li>\n" for each in follow_ups)
        yield "</ul>\n</section>\n"
    yield f"<footer><p>Made from what had the digest <code>{html_text(_word(document.get('digest')))}</code>; "
    yield "if any of it has moved, the plan is refused as stale.</p></footer>\n"


def _facts(document: Mapping[str, Json], made_at: str) -> Iterator[str]:
    nodes, objects = _items(document.get("nodes")), _items(document.get("objects"))
    restarts = [name for node in nodes for step in _items(node.get("steps")) for name in _words(step.get("restarts"))]
    certificates = sum("cert" in _word(step.get("phase")) for node in nodes for step in _items(node.get("steps")))
    facts = [
        ("nodes", len(nodes)),
        ("restarts", len(restarts)),
        ("certificate steps", certificates),
        ("objects", len(objects)),
        ("attributes", len(_items(document.get("attributes")))),
    ]
    yield '<dl class="facts">\n'
    yield from (f"<div><dt>{name}</dt><dd>{number}</dd></div>\n" for name, number in facts)
    yield "</dl>\n"
    if made_at:
        yield f'<p class="made">Made {html_text(made_at)}</p>\n'


def _attributes(attributes: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    if not attributes:
        return
    yield "<section>\n<h2>What is asked for</h2>\n"
    for each in attributes:
        verdict, code, route = (_word(each.get(key)) for key in ("verdict", "code", "route"))
        yield f'<article class="attribute {_class(verdict)}">\n<h3><code>{html_text(_word(each.get("path")))}</code>'
        yield f' <span class="badge">{html_text(verdict)}</span>'
        yield f" <code>{html_text(code)}</code></h3>\n" if code else "</h3>\n"
        yield f'<p class="values"><del>{_value(each.get("from"))}</del> '
        yield f'<span class="arrow">becomes</span> <ins>{_value(each.get("to"))}</ins></p>\n'
        if reason := _word(each.get("reason")):
            yield f"<p>{html_text(reason)}</p>\n"
        if route:
            yield f'<div class="route"><span>What to do</span><pre>{html_text(route)}</pre></div>\n'
        yield "</article>\n"
    yield "</section>\n"


def _timeline(document: Mapping[str, Json]) -> Iterator[str]:
    nodes, objects = _items(document.get("nodes")), _items(document.get("objects"))
    if not nodes and not objects:
        return
    yield '<section>\n<h2>The work, in its order</h2>\n<ol class="timeline">\n'
    left = [*objects]
    yield from _objects([each for each in left if not _word(each.get("after"))])
    group: list[Mapping[str, Json]] = []
    for node in nodes:
        due = [each for each in left if _word(each.get("after")) == _word(node.get("node"))]
        if group and _work_of(group[-1]) != _work_of(node):
            yield from _nodes(group)
            group = []
        group.append(node)
        if due:
            yield from _nodes(group)
            group = []
            yield from _objects(due)
    if group:
        yield from _nodes(group)
    known = {"", *(_word(node.get("node")) for node in nodes)}
    yield from _objects([each for each in left if _word(each.get("after")) not in known])
    yield "</ol>\n</section>\n"


def _work_of(node: Mapping[str, Json]) -> object:
    """Return what makes the work of two nodes the same for a reader: their names and addresses may differ."""
    name = _word(node.get("node"))
    return [
        (
            step.get("phase"),
            _word(step.get("title")).replace(name, ""),
            step.get("cause"),
            step.get("restarts"),
            [(each.get("path"), each.get("assumed"), _changed(each)) for each in _items(step.get("files"))],
        )
        for step in _items(node.get("steps"))
    ]


def _changed(file: Mapping[str, Json]) -> list[str]:
    lines = _word(file.get("diff")).splitlines()
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def _nodes(group: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield the card of a node, or of several that do the same one after the other."""
    names = [_word(each.get("node")) for each in group]
    shown = ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )
    heading = f"Node {shown}" if len(names) == 1 else f"{len(names)} nodes, one after the other: {shown}"
    yield f'<li class="node">\n<h3>{html_text(heading)}</h3>\n<ol class="steps">\n'
    for step in _items(group[0].get("steps")):
        title = _word(step.get("title"))
        yield from _step(step, title if len(names) == 1 else title.replace(names[0], "each of them"))
    yield "</ol>\n</li>\n"


def _step(step: Mapping[str, Json], title: str) -> Iterator[str]:
    yield f'<li>\n<p class="title"><code>{html_text(_word(step.get("phase")))}</code> {html_text(title)}'
    yield from (f' <span class="restart">restarts {html_text(each)}</span>' for each in _words(step.get("restarts")))
    yield f'</p>\n<p class="cause">because {html_text(_word(step.get("cause")))}</p>\n'
    for file in _items(step.get("files")):
        assumed = ' <span class="assumed">not seen: assumed to be as rendered</span>' if file.get("assumed") else ""
        yield f"<details open>\n<summary><code>{html_text(_word(file.get('path')))}</code>{assumed}</summary>\n"
        yield f"{_diff(_word(file.get('diff')))}</details>\n"
    yield "</li>\n"


def _objects(objects: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    for each in objects:
        namespace, name = (_word(each.get(key)) for key in ("namespace", "name"))
        place = f"{namespace}/{name}" if namespace else name
        yield f'<li class="object">\n<h3>{html_text(_word(each.get("kind")))} {html_text(place)}</h3>\n'
        yield f'<p class="cause">because {html_text(_word(each.get("cause")))}</p>\n'
        diff = _word(each.get("diff"))
        yield f"<details open>\n<summary>difference</summary>\n{_diff(diff)}</details>\n" if diff else ""
        yield "</li>\n"


def _diff(diff: str) -> str:
    lines = []
    for line in diff.splitlines():
        kind = next((name for start, name in _DIFF_CLASSES if line.startswith(start)), "")
        lines.append(f'<span class="{kind}">{html_text(line)}</span>' if kind else f"<span>{html_text(line)}</span>")
    return f'<pre class="diff">{"".join(lines)}</pre>\n'


def _value(value: Json) -> str:
    if value is None:
        return "not set"
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return f"<code>{html_text(shown)}</code>"


def _class(verdict: str) -> str:
    return verdict if verdict in _VERDICTS else "unknown"


def _word(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _words(value: Json) -> list[str]:
    return [_word(each) for each in value] if isinstance(value, list) else []


def _items(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
