"""All that there is to say about each attribute, made into one verdict per attribute."""

from collections.abc import Iterable, Mapping, Sequence

from garboard.change.attribute import CLUSTER
from garboard.change.codes import CODES, Weight
from garboard.change.differences import AttributeChange
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.judges import judge_change
from garboard.change.plan import PlannedAttribute
from garboard.change.table import attribute_table
from garboard.change.validation import PlacedFinding
from garboard.errors import BadUsage
from garboard.schema import suggest

Findings = dict[str, list[ChangeFinding]]
_ETCD_MOVES = ChangeFinding(
    code="etcd-move",
    reason="members on the nodes and an external etcd hold different data, which nothing here moves",
    route="take a snapshot, restore it where etcd is to be, and make the control plane again from there",
)
_UNKNOWN = ChangeFinding(
    code="not-applicable", reason="this field has no row in the table of attributes", route="leave it out"
)


def refuse_codes(accepted: Iterable[str]) -> None:
    """Refuse codes that nothing has, and those that nobody may accept."""
    acceptable = [code for code, each in CODES.items() if each.is_acceptable]
    for code in accepted:
        if code not in CODES:
            near = suggest(code, acceptable)
            raise BadUsage(f"--accept {code}: there is no such code", hint=f"did you mean {near}?" if near else None)
        if code not in acceptable:
            raise BadUsage(f"--accept {code}: this cannot be accepted", hint="docs/change.md lists what can be")


def findings_of(changes: Sequence[AttributeChange], context: ChangeContext) -> Findings:
    """Return what the table and its closer looks say about each change, by label."""
    found: Findings = {}
    for change in changes:
        row = attribute_table(change.kind).row(change.path)
        if change.path[0] == "etcd" and type(context.current.cluster.etcd) is not type(context.target.cluster.etcd):
            own = [_ETCD_MOVES]
        else:
            own = judge_change(change, row, context) if row else [_UNKNOWN]
        found.setdefault(change.label, []).extend(own)
    return found


def with_placed(findings: Findings, placed: Iterable[PlacedFinding], default: str) -> Findings:
    """Return findings with those of the whole added, each once; what is about no attribute stands at the default."""
    found = {label: list(own) for label, own in findings.items()}
    for each in placed:
        own = found.setdefault(each.label or default, [])
        if each.finding not in own:
            own.append(each.finding)
    return found


def left_out_findings(
    changes: Sequence[AttributeChange], left_out: frozenset[tuple[str, ...]], rewritten: frozenset[str]
) -> Iterable[PlacedFinding]:
    """Yield what a new version takes away without saying so; `rewritten` are the kinds that there is one of."""
    for change in changes:
        steps = (change.kind, *change.path)
        is_left_out = any(steps[:length] in left_out for length in range(2, len(steps) + 1))
        if is_left_out or (change.kind in rewritten and change.after is None):
            reason = "the new version does not have it"
            yield PlacedFinding(change.label, ChangeFinding(code="implied-removal", reason=reason))


def node_attributes(of_nodes: Mapping[str, Mapping[str, object]]) -> tuple[PlannedAttribute, ...]:
    """Return attributes of Init- and JoinConfiguration, which no change carries out, each with the way that works."""
    found = []
    for kind, members in of_nodes.items():
        for path, value in _leaves(members, ()):
            row = attribute_table(kind).row(path)
            finding = ChangeFinding(code=row.code, reason=row.why, route=row.route) if row else _UNKNOWN
            label = f"{kind}:{'.'.join(path)}"
            found.append(_ruled(label, None, value, [finding], ()))
    return tuple(found)


def _leaves(members: Mapping[str, object], path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], object]]:
    for name, value in members.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def ruled(
    changes: Sequence[AttributeChange], findings: Findings, accepted: Sequence[str]
) -> tuple[PlannedAttribute, ...]:
    """Return every attribute with its verdict; what was accepted weighs no more than advice."""
    known = {change.label: change for change in changes}
    return tuple(
        _ruled(
            label,
            known[label].before if label in known else None,
            known[label].after if label in known else next((each.found for each in own), None),
            own,
            accepted,
        )
        for label, own in findings.items()
    )


def _ruled(
    label: str, before: object, after: object, findings: Sequence[ChangeFinding], accepted: Sequence[str]
) -> PlannedAttribute:
    weights = {each.code: _weight(each, accepted) for each in findings}
    heaviest = max(findings, key=lambda each: weights[each.code])
    weight = weights[heaviest.code]
    others = [
        each
        for each in findings
        if each is not heaviest and each.code and (weight < Weight.REFUSED or weights[each.code] == weight)
    ]
    reasons = [_said(heaviest, accepted), *(_also(each, accepted) for each in others)]
    accepts = tuple(
        dict.fromkeys(
            each.code for each in findings if each.code and CODES[each.code].is_acceptable and each.code not in accepted
        )
    )
    route = heaviest.route
    if weight in (Weight.CONFIRM, Weight.BLOCKED):
        joint = "; then " if weight is Weight.CONFIRM else "; or "
        route = joint.join(filter(None, (route.rstrip("."), f"--accept {','.join(accepts)}")))
    return PlannedAttribute(
        label=label,
        before=before,  # type: ignore[arg-type]
        after=after,  # type: ignore[arg-type]
        weight=weight,
        code=heaviest.code,
        reason="; ".join(reasons),
        route=route,
        accepts=accepts if weight < Weight.REFUSED else (),
    )


def _weight(finding: ChangeFinding, accepted: Sequence[str]) -> Weight:
    return Weight.NOTE if finding.code in accepted and finding.weight > Weight.NOTE else finding.weight


def _also(finding: ChangeFinding, accepted: Sequence[str]) -> str:
    route = f" ({finding.route})" if finding.route else ""
    return f"{finding.code}: {_said(finding, accepted)}{route}"


def _said(finding: ChangeFinding, accepted: Sequence[str]) -> str:
    is_accepted = finding.code in accepted and CODES[finding.code].is_acceptable
    return f"{finding.reason} (accepted)" if is_accepted else finding.reason


def default_label(changes: Sequence[AttributeChange], component: str) -> str:
    """Return the attribute that a finding about a whole component stands at: the first that it depends on."""
    for change in changes:
        row = attribute_table(change.kind).row(change.path)
        if row and component in row.components:
            return change.label
    return changes[0].label if changes else CLUSTER
