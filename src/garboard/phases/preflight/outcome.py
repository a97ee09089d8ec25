"""Checks, what they find, and what that means for the one who asked."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from garboard.errors import BadUsage, GarboardError, NotReady
from garboard.phases.preflight.exam import Exam
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be; kubeadm's checks warn about some of it and refuse the rest."""

    check: str
    text: str
    is_error: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """One check by kubeadm's name. It yields (text, is an error) for all that it finds."""

    name: str
    look: Callable[[Exam], Iterator[tuple[str, bool]]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands in the way, and what is only worth knowing."""

    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()

    def refuse(self) -> None:
        """Raise with everything that stands in the way, if anything does."""
        if self.errors:
            raise PreflightFailed(self.errors)


_SIDE_BY_SIDE = 8


class PreflightFailed(NotReady):
    """The machine is not ready; every reason is told at once, and nothing has been changed."""

    default_class = "preflight"

    def __init__(self, errors: tuple[Finding, ...]) -> None:
        lines = "".join(f"\n  [{each.check}] {each.text}" for each in errors)
        names = ",".join(dict.fromkeys(each.check for each in errors))
        super().__init__(
            f"this machine is not ready; nothing has been changed:{lines}",
            hint=f"put it right, or pass what you know to be harmless to --ignore-preflight-errors={names}",
        )
        self.errors = errors


def examine(checks: Iterable[Check], exam: Exam) -> tuple[Finding, ...]:
    """Make every check; one that cannot find out what it needs has found just that.

    They are made side by side: most of them wait for a program or a socket, and none for another.
    """
    with ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE) as pool:
        return tuple(finding for found in pool.map(lambda check: _found(check, exam), checks) for finding in found)


def _found(check: Check, exam: Exam) -> list[Finding]:
    found: list[Finding] = []
    try:
        found += (Finding(check.name, text, is_error) for text, is_error in check.look(exam))
    except GarboardError as error:
        found.append(Finding(check.name, error.message))
    return found


def judge(findings: Iterable[Finding], ignored: Iterable[str]) -> Verdict:
    """Sort findings by what they mean; names are ignored whatever their case, and `all` stands alone."""
    names = {name.lower() for name in ignored}
    if "all" in names and len(names) > 1:
        others = ", ".join(sorted(names - {"all"}))
        raise BadUsage(
            f"--ignore-preflight-errors: all must not be combined with other checks ({others})",
            hint="name either all, or the checks one by one",
        )
    errors, warnings = list[Finding](), list[Finding]()
    for each in findings:
        is_ignored = "all" in names or each.check.lower() in names
        (errors if each.is_error and not is_ignored else warnings).append(each)
    return Verdict(tuple(errors), tuple(warnings))
