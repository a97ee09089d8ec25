"""How a change ends where it is not simply done: each has an exit code of its own, from 10 up."""

from garboard.errors import GarboardError, StalePlan

# No errors: 10 is that of a plan with changes.
IS_DONE, HAS_FOLLOW_UPS = 0, 12


class ChangeBlocked(GarboardError):
    """The plan is blocked, or has advice that nobody has accepted; nothing was changed."""

    exit_code = 11
    default_class = "change-blocked"


class ChangeUnsigned(GarboardError):
    """Certificates of this node have to be signed elsewhere first; only keys and requests were written."""

    exit_code = 11
    default_class = "external-ca"


class ChangeRolledBack(GarboardError):
    """A step failed, and what the run on this node had done was taken back; no further node was begun."""

    exit_code = 13
    default_class = "change-rolled-back"


class ChangeNeedsHelp(GarboardError):
    """A step failed, and what the run had done could not be taken back by itself."""

    exit_code = 14
    default_class = "change-half-done"


class ChangeInProgress(GarboardError):
    """Another change is at work, unfinished or unconfirmed; nothing was changed."""

    exit_code = 15
    default_class = "change-in-progress"


class ChangeStale(StalePlan):
    """What the plan was made from has moved before the change began; nothing was changed, and planning again helps."""

    exit_code = 16
