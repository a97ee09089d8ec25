"""Whether etcd can spare a member while it restarts."""

from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.model.component import LocalEtcd


def member_findings(context: ChangeContext) -> list[ChangeFinding]:
    """Return what speaks against restarting one member of etcd after the other."""
    members = context.snapshot.members
    if not isinstance(context.current.cluster.etcd, LocalEtcd):
        return []
    if members is None:
        reason = (
            "the members of etcd were not asked: before a change is carried out, each has to be up, and none a learner"
        )
        return [ChangeFinding(code="not-looked-at", reason=reason)]
    voters = [each for each in members if not each.is_learner]
    up = sum(each.is_healthy for each in voters)
    needed = len(voters) // 2 + 1
    learners = [each.name for each in members if each.is_learner]
    if learners:
        reason = f"{', '.join(learners)} is still a learner: wait until it votes"
        return [ChangeFinding(code="no-quorum", reason=reason, route="etcdctl member list")]
    if len(voters) > 1 and up - 1 < needed:
        down = ", ".join(each.name for each in voters if not each.is_healthy)
        reason = (
            f"with one more member away, {up - 1} of {len(voters)} would be up and {needed} are needed"
            f"{f' ({down} is down)' if down else ''}"
        )
        return [ChangeFinding(code="no-quorum", reason=reason, route="bring every member up first")]
    return []


def quorum_text(context: ChangeContext) -> str:
    """Say what is left of etcd while one member is away."""
    voters = [each for each in context.snapshot.members or [] if not each.is_learner]
    if not voters:
        return ""
    up = sum(each.is_healthy for each in voters) - 1
    return f"etcd meanwhile: {up} of {len(voters)} voting members up, {len(voters) // 2 + 1} needed"
