"""What phases plan can be kept in a journal: their requests and gates are registered."""

import importlib
import pkgutil
from dataclasses import is_dataclass

import garboard.phases
from garboard.node.runs import plan_codec
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT
from tests.support.phases.machines import MemoryMachine, context_on


def described_types() -> set[type]:
    """Return every value type of the phases that describes itself for a plan."""
    found: set[type] = set()
    for module in pkgutil.walk_packages(garboard.phases.__path__, "garboard.phases."):
        for each in vars(importlib.import_module(module.name)).values():
            if isinstance(each, type) and is_dataclass(each) and hasattr(each, "describe"):
                found.add(each)
    return found


def test_every_request_and_gate_is_registered() -> None:
    codec = plan_codec()
    found = described_types()
    assert len(found) >= 3
    assert {each.__name__ for each in found if each not in codec._tags and each not in codec._adapters} == set()


def test_plan_of_a_whole_init_comes_back_as_it_was() -> None:
    plan = plan_workflow(select(INIT), context_on(MemoryMachine(services=set())))
    codec = plan_codec()
    assert len(plan.steps) > 40
    assert codec.plan_from_bytes(codec.plan_to_bytes(plan)) == plan
