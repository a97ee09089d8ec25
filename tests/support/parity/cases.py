"""Configurations to compare for, as kubeadm reads them and as our input."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

import pytest

from garboard.documents import Json
from garboard.pki import ControlPlaneEndpoint, KeyAlgorithm, PkiInputs
from tests.support.parity.kubeadm import Kubeadm

BASE = PkiInputs(node_name="node-1", advertise_address=IPv4Address("192.0.2.10"))


@dataclass(frozen=True)
class Case:
    """One configuration, as kubeadm reads it and as our input."""

    name: str
    inputs: PkiInputs
    init: dict[str, Json] = field(default_factory=dict)
    cluster: dict[str, Json] = field(default_factory=dict)

    def write(self, kubeadm: Kubeadm, etc: Path) -> str:
        inputs = self.inputs
        init: dict[str, Json] = {
            "localAPIEndpoint": {"advertiseAddress": str(inputs.advertise_address), "bindPort": inputs.bind_port},
            "nodeRegistration": {"name": inputs.node_name},
            **self.init,
        }
        return kubeadm.write_config(etc, init, self.cluster)


CASES = [
    Case("defaults", BASE),
    Case(
        "ECDSA-P256",
        replace(BASE, key_algorithm=KeyAlgorithm.ECDSA_P256),
        cluster={"encryptionAlgorithm": "ECDSA-P256"},
    ),
    Case(
        "ECDSA-P384",
        replace(BASE, key_algorithm=KeyAlgorithm.ECDSA_P384),
        cluster={"encryptionAlgorithm": "ECDSA-P384"},
    ),
    Case("RSA-3072", replace(BASE, key_algorithm=KeyAlgorithm.RSA_3072), cluster={"encryptionAlgorithm": "RSA-3072"}),
    Case(
        "validity periods",
        replace(BASE, certificate_validity=timedelta(hours=2), ca_certificate_validity=timedelta(hours=876000)),
        cluster={"certificateValidityPeriod": "2h", "caCertificateValidityPeriod": "876000h"},
    ),
    Case(
        "extra names",
        replace(
            BASE,
            api_server_cert_sans=("z.example", "*.a.example", "198.51.100.1", "z.example", "kubernetes", "192.0.2.10"),
            etcd_server_cert_sans=("etcd.example", "fd00::e", "10.9.8.7"),
            etcd_peer_cert_sans=("peer.example", "127.0.0.1"),
        ),
        cluster={
            "apiServer": {
                "certSANs": ["z.example", "*.a.example", "198.51.100.1", "z.example", "kubernetes", "192.0.2.10"]
            },
            "etcd": {
                "local": {
                    "serverCertSANs": ["etcd.example", "fd00::e", "10.9.8.7"],
                    "peerCertSANs": ["peer.example", "127.0.0.1"],
                }
            },
        },
    ),
    Case(
        "IPv6",
        replace(
            BASE,
            advertise_address=IPv6Address("fd00::10"),
            service_subnets=(IPv6Network("fd00:1::/112"),),
            control_plane_endpoint=ControlPlaneEndpoint("fd00::99", "8443"),
        ),
        cluster={"networking": {"serviceSubnet": "fd00:1::/112"}, "controlPlaneEndpoint": "[fd00::99]:8443"},
    ),
    Case(
        "dual stack and own domain",
        replace(
            BASE,
            service_subnets=(IPv4Network("10.111.0.0/16"), IPv6Network("fd00:2::/112")),
            dns_domain="corp.example",
        ),
        cluster={"networking": {"serviceSubnet": "10.111.0.0/16,fd00:2::/112", "dnsDomain": "corp.example"}},
    ),
    Case(
        "shared endpoint, own port and cluster name",
        replace(
            BASE,
            bind_port=7443,
            control_plane_endpoint=ControlPlaneEndpoint("lb.example", "7443"),
            cluster_name="prod_1",
        ),
        cluster={"controlPlaneEndpoint": "lb.example", "clusterName": "prod_1"},
    ),
    Case(
        "external etcd",
        replace(BASE, has_external_etcd=True),
        cluster={
            "etcd": {
                "external": {
                    "endpoints": ["https://192.0.2.50:2379"],
                    "caFile": "/etc/etcd/ca.crt",
                    "certFile": "/etc/etcd/client.crt",
                    "keyFile": "/etc/etcd/client.key",
                }
            }
        },
    ),
    Case("node named like its CA", replace(BASE, node_name="etcd-ca")),
    Case("long node name", replace(BASE, node_name=".".join(["n" * 50] * 3))),
]
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
