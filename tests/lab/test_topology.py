import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import BadUsage, InvalidValue
from garboard.lab.topology import NODE_NETWORK, Bootstrap, Lab, Role, plan_lab
from garboard.model import DEFAULT_VERSION


def lab(control_planes: int = 3, workers: int = 1, name: str = "lab", pod_subnet: str = "10.244.0.0/16") -> Lab:
    return plan_lab(
        name, DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=control_planes, workers=workers, pod_subnet=pod_subnet
    )


def test_nodes_are_named_and_numbered_in_order() -> None:
    assert [(n.name, n.role, n.address) for n in lab().nodes] == [
        ("cp1", Role.CONTROL_PLANE, "10.89.0.11"),
        ("cp2", Role.CONTROL_PLANE, "10.89.0.12"),
        ("cp3", Role.CONTROL_PLANE, "10.89.0.13"),
        ("worker1", Role.WORKER, "10.89.0.14"),
    ]


@given(st.integers(1, 100), st.integers(0, 100))
def test_addresses_and_pod_networks_never_overlap(control_planes: int, workers: int) -> None:
    nodes = lab(control_planes, workers).nodes
    addresses = [ipaddress.ip_address(node.address) for node in nodes]
    subnets = [ipaddress.ip_network(node.pod_subnet("10.244.0.0/16")) for node in nodes]
    assert len(set(addresses)) == len(set(subnets)) == len(nodes)
    assert all(address in NODE_NETWORK for address in addresses)


@given(st.integers(1, 5), st.integers(0, 5))
def test_a_lab_survives_being_written_down(control_planes: int, workers: int) -> None:
    made = lab(control_planes, workers)
    assert Lab.from_json(made.as_json()) == made


def test_the_index_of_a_removed_node_below_the_last_is_not_used_again() -> None:
    grown = lab().without_node("cp2").with_node(Role.CONTROL_PLANE)
    assert grown.nodes[-1].name == "cp4"
    assert grown.nodes[-1].index == 4


@pytest.mark.parametrize("name", ["", "Lab", "1lab", "a" * 25, "lab-", "a/b", "a b", "ä"])
def test_names_that_would_not_fit_the_machine_are_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match="is no name for a lab"):
        lab(name=name)


@pytest.mark.parametrize(("control_planes", "workers"), [(0, 1), (-1, 0), (1, -1), (150, 100)])
def test_numbers_that_make_no_lab_are_refused(control_planes: int, workers: int) -> None:
    with pytest.raises(InvalidValue, match="make no lab"):
        lab(control_planes, workers)


@pytest.mark.parametrize("subnet", ["10.244.0.0/23", "fd00::/48", "10.0.0.0/28"])
def test_a_pod_subnet_without_room_is_refused(subnet: str) -> None:
    with pytest.raises(InvalidValue, match="pod subnet"):
        lab(pod_subnet=subnet)


def test_an_unknown_node_names_the_known_ones() -> None:
    with pytest.raises(BadUsage, match="no node 'cp9'") as raised:
        lab().node("cp9")
    assert raised.value.hint == "its nodes are cp1, cp2, cp3, worker1"
