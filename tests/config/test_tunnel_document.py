"""TunnelConfiguration beside JoinConfiguration, and the flags that say the same."""

import pytest

from garboard.config import (
    ConfigFile,
    FixedFacts,
    GivenFlags,
    InvalidConfiguration,
    Loaded,
    check_file,
    check_mixed_flags,
    join_from_flags,
    join_from_values,
    migrated_text,
)
from garboard.config.flags import FlagValue
from garboard.config.reading import ReadOptions
from garboard.config.whole_file import left_out
from garboard.errors import BadDocument, BadUsage
from garboard.model.lifecycle import JoinConfiguration
from garboard.model.tunnel import JoinTunnel
from tests.support.config.configurations import CLUSTER, INIT, JOIN

FACTS = FixedFacts(host="node-7", address="10.0.0.7")
HEAD = "apiVersion: tunnel.garboard.dev/v1alpha1\nkind: TunnelConfiguration\n"
SHORTEST = f"{HEAD}server: k.example\ncredentials: /root/tunnel\n"


def read(text: str) -> ConfigFile:
    return ConfigFile.read(text, file="f.yaml", host=FACTS)


def load(tunnel: str, join: str = JOIN) -> Loaded[JoinConfiguration]:
    return read(f"{join}---\n{tunnel}").join()


def test_shortest_document_has_the_defaults_and_no_warning() -> None:
    loaded = load(SHORTEST)
    assert loaded.config.tunnel == JoinTunnel(server="k.example", credentials_dir="/root/tunnel")
    assert loaded.warnings == read(JOIN).join().warnings


def test_every_field_is_read() -> None:
    text = SHORTEST + 'bindAddress: 10.255.0.1\nas: static-pod\napiServer: "10.0.0.5:7443"\nimage: example/tunnel:1\n'
    assert load(text).config.tunnel == JoinTunnel(
        server="k.example", credentials_dir="/root/tunnel", bind_address="10.255.0.1", agent_form="static-pod",
        api_server="10.0.0.5:7443", image="example/tunnel:1",
    )  # fmt: skip


def test_file_without_it_means_no_tunnel() -> None:
    assert read(JOIN).join().config.tunnel is None


def test_everything_that_is_wrong_is_told_with_its_line() -> None:
    text = f"{HEAD}server: 'k example'\ncredentials: pki\nbindAddress: 127.0.0.1\nas: pod\napiServer: api\nport: 1\n"
    with pytest.raises(InvalidConfiguration) as caught:
        load(text)
    fields = {line.partition(":")[0] for line in caught.value.problems}
    assert fields > {"apiServer", "as", "bindAddress", "credentials", "server"}
    assert any(line.startswith('unknown field "port" of TunnelConfiguration') for line in caught.value.problems)
    assert all("(line " in line for line in caught.value.problems)


@pytest.mark.parametrize(("text", "said"), [(HEAD, "server: Required value"), (HEAD, "credentials: Required value")])
def test_what_is_required_is_told(text: str, said: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load(text)
    assert any(line.startswith(said) for line in caught.value.problems)


def test_value_that_is_no_text_is_told() -> None:
    with pytest.raises(InvalidConfiguration, match="server: Invalid value: 7: must be a text"):
        load(f"{HEAD}server: 7\ncredentials: /root/tunnel\n")


def test_control_plane_cannot_join_through_a_tunnel() -> None:
    with pytest.raises(InvalidConfiguration, match="a control plane cannot join through a tunnel"):
        load(SHORTEST, f"{JOIN}controlPlane: {{}}\n")


def test_for_other_commands_it_is_a_foreign_document() -> None:
    ignored = "Ignored configuration document with GroupVersionKind tunnel.garboard.dev/v1alpha1, Kind=TunnelConfig"
    text = f"{INIT}---\n{CLUSTER}---\n{SHORTEST}".replace("VERSION", "v1.37.1")
    assert any(ignored in each for each in read(text).init().warnings)


def test_another_version_of_it_is_a_foreign_document() -> None:
    loaded = load(SHORTEST.replace("v1alpha1", "v2"))
    assert loaded.config.tunnel is None
    assert any("tunnel.garboard.dev/v2" in each for each in loaded.warnings)


def test_validation_knows_it_beside_the_document_that_it_belongs_to() -> None:
    file = read(f"{JOIN}---\n{SHORTEST}")
    checked = check_file(file)
    assert "TunnelConfiguration" not in migrated_text(checked, file)
    assert any("TunnelConfiguration" in line and "copy it into the new file" in line for line in left_out(file))
    with pytest.raises(BadDocument, match="unknown configuration APIs"):
        check_file(read(SHORTEST))


def flags(**given: FlagValue) -> GivenFlags:
    values = {name.replace("_", "-"): value for name, value in given.items()}
    defaults: dict[str, FlagValue] = {"discovery-file": "", "token": "abcdef.0123456789abcdef"}
    return GivenFlags({**defaults, **values}, frozenset(values))


def test_flags_say_the_same() -> None:
    given = flags(via_tunnel="k.example", tunnel_credentials="/root/tunnel", tunnel_as="static-pod",
                  discovery_token_unsafe_skip_ca_verification=True)  # fmt: skip
    loaded = join_from_flags(join_from_values(given, "10.0.0.1:6443"), FACTS, ReadOptions())
    assert loaded.config.tunnel == JoinTunnel(
        server="k.example", credentials_dir="/root/tunnel", agent_form="static-pod"
    )


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"via_tunnel": "k.example"}, id="no credentials"),
        pytest.param({"tunnel_credentials": "/root/tunnel"}, id="no server"),
        pytest.param({"tunnel_as": "unit"}, id="neither"),
    ],
)
def test_flags_go_together(given: dict[str, FlagValue]) -> None:
    with pytest.raises(BadUsage, match="needs --via-tunnel and --tunnel-credentials"):
        join_from_values(flags(**given), "10.0.0.1:6443")


def test_flags_are_refused_beside_a_file_as_all_that_belongs_into_one() -> None:
    with pytest.raises(BadUsage, match="can not mix"):
        check_mixed_flags(["config", "via-tunnel"])
