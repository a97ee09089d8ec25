import pytest

from garboard.config.flags import check_mixed_flags, parse_feature_gates
from garboard.config.problems import Notes
from garboard.errors import BadUsage
from garboard.model.minors import MINORS

OLDER, NEWER = MINORS.values()


@pytest.mark.parametrize("flags", [
    ["config"],
    ["config", "dry-run", "ignore-preflight-errors", "node-name", "upload-certs"],
    ["config", "skip-phases", "skip-token-print", "v", "yes", "strict-config"],
    ["control-plane-endpoint", "patches"],
])  # fmt: skip
def test_flags_that_go_with_a_file_or_without_one(flags: list[str]) -> None:
    check_mixed_flags(flags)


def test_flags_that_a_file_would_make_pointless_are_named_as_kubeadm_does() -> None:
    with pytest.raises(BadUsage, match=r"can not mix '--config' with arguments \[cert-dir patches\]"):
        check_mixed_flags(["patches", "config", "cert-dir", "dry-run"])


def test_gates_are_those_of_the_minor() -> None:
    notes = Notes()
    assert parse_feature_gates("PublicKeysECDSA=true, RootlessControlPlane=f", OLDER, notes) == {
        "PublicKeysECDSA": True,
        "RootlessControlPlane": False,
    }
    assert notes.warnings == [
        "Setting deprecated feature gate PublicKeysECDSA=true. It will be removed in a future release."
    ]
    with pytest.raises(BadUsage, match="unrecognized feature-gate key: PublicKeysECDSA"):
        parse_feature_gates("PublicKeysECDSA=true", NEWER, Notes())


@pytest.mark.parametrize(("text", "message"), [
    ("RootlessControlPlane", "missing bool value for feature-gate key:RootlessControlPlane"),
    ("RootlessControlPlane=on", "invalid value on for feature-gate key: RootlessControlPlane, use true|false instead"),
])  # fmt: skip
def test_a_gate_needs_a_switch(text: str, message: str) -> None:
    with pytest.raises(BadUsage) as caught:
        parse_feature_gates(text, NEWER, Notes())
    assert caught.value.message == message


def test_the_gate_of_the_local_mode_is_taken_at_every_minor() -> None:
    assert parse_feature_gates("ControlPlaneKubeletLocalMode=false", NEWER, Notes()) == {
        "ControlPlaneKubeletLocalMode": False
    }
