import re

import pytest

from garboard.config.versions import resolve_version
from garboard.errors import InvalidValue


@pytest.mark.parametrize(("text", "version"), [
    pytest.param("v1.36.2", "v1.36.2", id="as kubeadm prints it"),
    pytest.param("1.37.0", "v1.37.0", id="without the v"),
    pytest.param("v1.37.0-rc.1", "v1.37.0-rc.1", id="pre-release"),
    pytest.param("release/v1.36.0", "v1.36.0", id="release prefix"),
    pytest.param("stable", "v1.37.1", id="label"),
    pytest.param("stable-1", "v1.37.1", id="label with a major"),
    pytest.param("latest-1.36", "v1.36.4", id="label with a minor"),
])  # fmt: skip
def test_version_is_brought_into_its_normal_form(text: str, version: str) -> None:
    assert resolve_version(text).text == version
    assert not resolve_version(text).is_ci


def test_a_ci_build_is_known_as_such() -> None:
    assert resolve_version("ci/v1.37.0-alpha.1").is_ci


@pytest.mark.parametrize("text", ["", "1", "v1.37", "foo", "stable-1.37.1", "v1.37.1 ", "v01.2.3", "v1.37.١"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        resolve_version(text)


@pytest.mark.parametrize(("text", "reason"), [
    pytest.param("v1.37.1+a_b", "could not parse pre-release/metadata (+a_b)", id="underscore"),
    pytest.param("v1.37.1-", "could not parse pre-release/metadata (-)", id="nothing after the dash"),
    pytest.param("v1.37.1-rc.01", 'zero-prefixed version component "01"', id="zero-led pre-release"),
    pytest.param("v1.37.01", 'zero-prefixed version component "01"', id="zero-led patch"),
    pytest.param("v1.37.01-rc.1", 'zero-prefixed version component "01"', id="zero-led patch of a pre-release"),
    pytest.param("v1.37.1.5", 'illegal version string "v1.37.1.5"', id="four numbers"),
])  # fmt: skip
def test_what_semantic_versioning_has_no_room_for_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(reason)):
        resolve_version(text)


@pytest.mark.parametrize("text", ["v1.35.8", "v1.38.0", "stable-1.34", "v99999999999.1.1"])
def test_another_minor_is_refused_with_status_3(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        assert resolve_version(text).facts
    assert caught.value.exit_code == 3
