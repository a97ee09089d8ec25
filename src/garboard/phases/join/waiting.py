"""`join phase wait-control-plane`: the components of this node answer."""

from collections.abc import Iterator

from garboard.engine import AwaitGate, Note, Step
from garboard.phases.join.context import JoinContext
from garboard.phases.waiting import control_plane_gates


def plan_wait_control_plane(context: JoinContext) -> Iterator[Step | Note]:
    for gate in control_plane_gates(context.config.timeouts):
        yield Step(AwaitGate(gate=gate), "a control plane that does not answer is none")
