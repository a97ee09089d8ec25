"""A rule: the stable code that findings carry, why it matters, how to mend it, and whether it may be accepted."""

from enum import StrEnum

from garboard.values import dataclass


class RuleKind(StrEnum):
    """Who says so: the patch language, Kubernetes itself, or our own judgement."""

    PATCH = "patch"  # about the patch, whatever it is applied to
    VALIDITY = "validity"  # the API server, the kubelet or the component refuses the result
    DANGER = "danger"  # the result is taken, and the cluster loses something that it needs


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    summary: str
    help: str
    mend: str = ""
    kind: RuleKind = RuleKind.PATCH

    @property
    def is_acceptable(self) -> bool:
        """Whether `--accept` or a comment lets its findings pass: what Kubernetes refuses stays refused."""
        return self.kind is RuleKind.DANGER
