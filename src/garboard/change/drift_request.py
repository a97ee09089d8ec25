"""Hand edits as what is asked for: that all of them, or some by name, are recorded, or go."""

from typing import Literal

from garboard.change.adopting import DriftOf, adoption_of
from garboard.change.correcting import correction_of
from garboard.change.drift_names import DriftNames
from garboard.change.request import ChangeRequest, DriftAdoption, DriftCorrection
from garboard.change.snapshot import ClusterSnapshot
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRequest:
    """What is to become of hand edits, which somebody has to look for first."""

    policy: Literal["adopt", "overwrite"]
    names: DriftNames = DriftNames()

    def resolved(self, snapshot: ClusterSnapshot, drift_of: DriftOf) -> DriftAdoption | DriftCorrection:
        """Return what that means for what was seen."""
        drift = drift_of(snapshot)
        self.names.refuse_unknown(drift)
        if self.policy == "adopt":
            return adoption_of(snapshot, drift_of, self.names)
        return correction_of(drift, self.names)


AskedChange = ChangeRequest | DriftRequest
