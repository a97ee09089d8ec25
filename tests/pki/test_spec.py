from dataclasses import replace
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

import pytest

from garboard.errors import InvalidValue
from garboard.pki import CERTIFICATES, ControlPlaneEndpoint, KeyAlgorithm, certificate, expected_certificates
from tests.support.pki.fixtures import INPUTS, NOW


def test_every_certificate_is_signed_by_one_before_it() -> None:
    seen: set[str | None] = {None}
    for spec in CERTIFICATES:
        assert spec.ca in seen
        seen.add(spec.name)


def test_external_etcd_leaves_out_what_etcd_signs() -> None:
    names = [spec.name for spec in expected_certificates(has_external_etcd=True)]
    assert names == ["ca", "apiserver", "apiserver-kubelet-client", "front-proxy-ca", "front-proxy-client"]


def test_api_server_is_named_for_every_way_to_reach_it() -> None:
    inputs = replace(
        INPUTS,
        control_plane_endpoint=ControlPlaneEndpoint.parse("api.example.com:443"),
        service_subnets=(IPv6Network("fd00:1::/112"), IPv4Network("10.96.0.0/12")),
        dns_domain="corp.example",
        api_server_cert_sans=("extra.example", "198.51.100.7", "not a name"),
    )
    names = certificate("apiserver").all_names(inputs)
    assert names.dns == (
        "node-1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.corp.example",
        "api.example.com", "extra.example",
    )  # fmt: skip
    assert names.ips == tuple(map(ip_address, ("fd00:1::1", "192.0.2.10", "198.51.100.7")))
    assert certificate("apiserver").rejected_sans(inputs) == ("not a name",)


def test_etcd_is_named_for_its_node_and_its_loopbacks() -> None:
    inputs = replace(INPUTS, advertise_address=IPv6Address("fd00::5"), etcd_peer_cert_sans=("peer.example",))
    assert certificate("etcd-server").all_names(inputs).dns == ("node-1", "localhost")
    peer = certificate("etcd-peer").all_names(inputs)
    assert (peer.dns, [str(each) for each in peer.ips]) == (
        ("node-1", "localhost", "peer.example"),
        ["fd00::5", "127.0.0.1", "::1"],
    )


def test_request_is_backdated_and_lasts_as_configured() -> None:
    inputs = replace(INPUTS, certificate_validity=timedelta(hours=1), ca_certificate_validity=timedelta(days=2))
    leaf, ca = (certificate(name).request(inputs, NOW) for name in ("etcd-server", "ca"))
    assert (leaf.not_before, leaf.not_after) == (NOW - timedelta(minutes=5), NOW + timedelta(hours=1))
    assert (ca.not_before, ca.not_after) == (NOW - timedelta(minutes=5), NOW + timedelta(days=2))
    assert (leaf.common_name, ca.common_name) == ("node-1", "kubernetes")


def test_service_subnet_without_room_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no room"):
        _ = replace(INPUTS, service_subnets=(IPv4Network("10.0.0.1/32"),)).api_server_service_ip


def test_urls_of_the_two_endpoints() -> None:
    inputs = replace(INPUTS, advertise_address=IPv6Address("fd00::5"), bind_port=7443)
    assert (inputs.local_url, inputs.control_plane_url) == ("https://[fd00::5]:7443",) * 2
    shared = replace(inputs, control_plane_endpoint=ControlPlaneEndpoint.parse("lb.example"))
    assert (shared.local_url, shared.control_plane_url) == ("https://[fd00::5]:7443", "https://lb.example:7443")


def test_unknown_names_are_refused_with_the_list() -> None:
    with pytest.raises(InvalidValue, match="not a certificate"):
        certificate("apiserver.crt")
    with pytest.raises(InvalidValue) as caught:
        KeyAlgorithm.parse("DSA")
    assert caught.value.hint == "the algorithms are RSA-2048, RSA-3072, RSA-4096, ECDSA-P256, ECDSA-P384"
