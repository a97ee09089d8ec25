import pytest

from garboard.lab.systemctl import SystemctlAnswer, UnitState, Verb, describe, unit_name


@pytest.mark.parametrize(
    ("state", "verb", "answer"),
    [
        pytest.param(UnitState(wanted=True, pid=7), Verb.IS_ACTIVE, SystemctlAnswer("active\n"), id="runs"),
        pytest.param(UnitState(wanted=True), Verb.IS_ACTIVE, SystemctlAnswer("activating\n", 3), id="is started again"),
        pytest.param(UnitState(), Verb.IS_ACTIVE, SystemctlAnswer("inactive\n", 3), id="is not wanted"),
        pytest.param(UnitState(), Verb.IS_ENABLED, SystemctlAnswer("enabled\n"), id="starts with the node"),
        pytest.param(UnitState(enabled=False), Verb.IS_ENABLED, SystemctlAnswer("disabled\n", 1), id="does not"),
        pytest.param(
            UnitState(wanted=True, pid=7, is_oneshot=True),
            Verb.IS_ACTIVE,
            SystemctlAnswer("activating\n", 3),
            id="a oneshot service runs",
        ),
        pytest.param(UnitState(has_failed=True), Verb.IS_ACTIVE, SystemctlAnswer("failed\n", 3), id="has failed"),
        pytest.param(UnitState(remains=True), Verb.IS_ACTIVE, SystemctlAnswer("active\n"), id="has ended and remains"),
    ],
)
def test_questions_are_answered_as_systemctl_does(state: UnitState, verb: Verb, answer: SystemctlAnswer) -> None:
    assert describe("kubelet", verb, state) == answer


def test_a_unit_that_is_not_there_has_a_status_of_its_own() -> None:
    answer = describe("crio", Verb.STATUS, None)
    assert answer.status == 4
    assert "crio.service could not be found" in answer.text
    assert "Unit x.timer could not be found" in describe("x.timer", Verb.IS_ENABLED, None).text


def test_a_unit_is_known_with_and_without_its_suffix() -> None:
    assert unit_name("kubelet.service") == unit_name("kubelet") == "kubelet"
