"""Closer looks at flags of the control plane: what their rows say, and what the values make of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from garboard.change.attribute import AttributeRow
from garboard.change.differences import AttributeChange
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.members import member_findings
from garboard.change.rows_flags import FlagRow, flag_row
from garboard.model.go import BOOLEANS
from garboard.values import Json

PROGRAMS: Mapping[str, str] = {
    "apiServer": "kube-apiserver",
    "controllerManager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
    "etcd": "etcd",
}
_LOG_MEGABYTES, _LOG_BACKUPS = 100, 100
_DEFAULT_PORTS = (30000, 32767)


def judge_flag(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    """Return what there is to say about one flag."""
    program = PROGRAMS[change.path[0]]
    flag = flag_row(program, change.item)
    plain = ChangeFinding(code=flag.code, reason=flag.why or row.why, route=flag.route, follow_ups=flag.follow_ups)
    if flag.judge:
        return _JUDGES[flag.judge](change, flag, plain, context)
    return [plain]


def _values(value: Json) -> tuple[str, ...]:
    """Return the values of a flag: one, several where it is repeated, none where it is not set."""
    return tuple(str(each) for each in value) if isinstance(value, list) else () if value is None else (str(value),)


def _judge_members(
    _change: AttributeChange, _flag: FlagRow, plain: ChangeFinding, context: ChangeContext
) -> list[ChangeFinding]:
    return [plain, *member_findings(context)]


def _judge_issuer(
    change: AttributeChange, _flag: FlagRow, plain: ChangeFinding, context: ChangeContext
) -> list[ChangeFinding]:
    default = (f"https://kubernetes.default.svc.{context.current.cluster.networking.dns_domain}",)
    before, after = (_values(value) or default for value in (change.before, change.after))
    lost = [each for each in before if each not in after]
    if lost:
        reason = f"tokens of {', '.join(lost)} are refused at once"
        return [replace(plain, code="critical-flag-changed", reason=reason)]
    return [plain]


def _judge_anonymous(
    change: AttributeChange, _flag: FlagRow, plain: ChangeFinding, _context: ChangeContext
) -> list[ChangeFinding]:
    values = _values(change.after)
    if values and BOOLEANS.get(values[-1]) is False:
        return [plain]
    return [ChangeFinding(reason="kube-apiserver restarts with the new command line, one control plane at a time")]


def _judge_audit(
    _change: AttributeChange, _flag: FlagRow, plain: ChangeFinding, context: ChangeContext
) -> list[ChangeFinding]:
    """Say how much room the logs may take with the limits that are in force then."""
    args = {each.name: each.value for each in context.target.cluster.api_server.extra_args}
    if "audit-log-path" not in args or args["audit-log-path"] == "-":
        return [plain]
    size = _count(args.get("audit-log-maxsize"), _LOG_MEGABYTES)
    backups = _count(args.get("audit-log-maxbackup"), _LOG_BACKUPS)
    days = _count(args.get("audit-log-maxage"), 366)
    if size == 0 or backups == 0:
        room = "without a limit, because 0 means that there is none"
    else:
        room = f"up to {size * (backups + 1) / 1000:.1f} GB on each control plane ({backups} files of {size} MB and one"
        room += f" that is written, {days} days at most)"
    return [replace(plain, reason=f"{plain.reason}. The log takes {room}")]


def _count(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else default


def _judge_node_ports(
    change: AttributeChange, _flag: FlagRow, plain: ChangeFinding, context: ChangeContext
) -> list[ChangeFinding]:
    values = _values(change.after)
    low, high = _port_range(values[-1]) if values else _DEFAULT_PORTS
    outside = [
        f"{each.namespace}/{each.name} ({port})"
        for each in context.snapshot.services
        for port in each.node_ports
        if not low <= port <= high
    ]
    if outside:
        return [replace(plain, reason=f"these keep ports outside of {low}-{high}: {_listed(outside)}")]
    return [replace(plain, reason=f"no Service has a port outside of {low}-{high}")]


def _port_range(text: str) -> tuple[int, int]:
    """Read FIRST-LAST or FIRST+COUNT; what is neither the rules of flags refuse."""
    first, sign, last = text.partition("-") if "-" in text else text.partition("+")
    if not (first.isdigit() and last.isdigit()):
        return 0, 65535
    return int(first), int(last) if sign == "-" else int(first) + int(last)


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


_JUDGES: Mapping[str, Callable[[AttributeChange, FlagRow, ChangeFinding, ChangeContext], list[ChangeFinding]]] = {
    "anonymous": _judge_anonymous,
    "audit": _judge_audit,
    "issuer": _judge_issuer,
    "members": _judge_members,
    "node-ports": _judge_node_ports,
}
