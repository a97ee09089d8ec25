import pytest

from garboard.lab.units import Answer, UnitState, Verb, describe, unit_name


@pytest.mark.parametrize(
    ("state", "verb", "answer"),
    [
        pytest.param(UnitState(wanted=True, pid=7), Verb.IS_ACTIVE, Answer("active\n"), id="runs"),
        pytest.param(UnitState(wanted=True), Verb.IS_ACTIVE, Answer("activating\n", 3), id="is started again"),
        pytest.param(UnitState(), Verb.IS_ACTIVE, Answer("inactive\n", 3), id="is not wanted"),
        pytest.param(UnitState(), Verb.IS_ENABLED, Answer("enabled\n"), id="starts with the node"),
        pytest.param(UnitState(enabled=False), Verb.IS_ENABLED, Answer("disabled\n", 1), id="does not"),
    ],
)
def test_questions_are_answered_as_systemctl_does(state: UnitState, verb: Verb, answer: Answer) -> None:
    assert describe("kubelet", verb, state) == answer


def test_a_unit_that_is_not_there_has_a_status_of_its_own() -> None:
    answer = describe("crio", Verb.STATUS, None)
    assert answer.status == 4
    assert "crio.service could not be found" in answer.text


def test_a_unit_is_known_with_and_without_its_suffix() -> None:
    assert unit_name("kubelet.service") == unit_name("kubelet") == "kubelet"
