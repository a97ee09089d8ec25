import pytest

from garboard.config import Notes
from garboard.errors import BadUsage, GarboardError
from garboard.model.component import Arg
from garboard.model.duration import Duration
from garboard.phases.flags import FlagValue, GivenFlags
from garboard.phases.init.flags import INIT_FLAGS, init_from_values


def values(**given: FlagValue) -> GivenFlags:
    named = {name.replace("_", "-"): value for name, value in given.items()}
    return GivenFlags({**{name: flag.default for name, flag in INIT_FLAGS.items()}, **named}, frozenset(named))


def test_flags_left_alone_are_the_defaults_of_a_file() -> None:
    init, version = init_from_values(values(), Notes())
    assert (init.cluster.certificates_dir, init.cluster.image_repository) == ("/etc/kubernetes/pki", "registry.k8s.io")
    assert (init.patches_directory, init.local_api_endpoint.bind_port) == (None, 6443)
    assert init.bootstrap_tokens[0].ttl == Duration.of(hours=24)
    assert version.text == "v1.37.1"


def test_lists_take_commas_and_repeats() -> None:
    init, _ = init_from_values(values(apiserver_cert_extra_sans=("a.example,b.example", "c.example")), Notes())
    assert init.cluster.api_server.cert_sans == ("a.example", "b.example", "c.example")


def test_extra_arguments_keep_their_order_and_warn() -> None:
    notes = Notes()
    init, _ = init_from_values(values(scheduler_extra_args=("z=1,a=2", "a=3")), notes)
    assert init.cluster.scheduler.extra_args == (Arg("z", "1"), Arg("a", "2"), Arg("a", "3"))
    assert ["deprecated" in warning for warning in notes.warnings] == [True]


@pytest.mark.parametrize("text", ["nope", "a=1,b", "a=b=c", ""])
def test_extra_argument_without_one_equals_sign_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match="malformed key=value pair"):
        init_from_values(values(apiserver_extra_args=(text,)), Notes())


@pytest.mark.parametrize(
    "given",
    [{"kubernetes_version": "v1.20.0"}, {"kubernetes_version": "?"}, {"token_ttl": "soon"}, {"feature_gates": "X=1"}],
    ids=str,
)
def test_value_that_makes_no_sense_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(GarboardError):
        init_from_values(values(**given), Notes())
