from garboard.lab import network
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION

LAB = plan_lab("lab", DEFAULT_VERSION, Bootstrap.NONE, control_planes=2, workers=1)
CP1, CP2, WORKER = LAB.nodes


def test_a_node_gets_its_address_and_a_default_route() -> None:
    assert network.node_commands(CP2).splitlines() == [
        "link set lo up",
        "addr add 10.89.0.12/24 dev eth0",
        "link set eth0 up",
        "route add default via 10.89.0.1",
    ]


def test_pods_of_other_nodes_are_reached_through_their_node() -> None:
    assert network.route_commands(CP1, LAB.nodes, LAB.pod_subnet).splitlines() == [
        "route replace 10.244.1.0/24 via 10.89.0.12",
        "route replace 10.244.2.0/24 via 10.89.0.13",
    ]


def test_a_partition_drops_both_ways_and_none_leaves_no_rule() -> None:
    rules = network.partition_rules([(CP1, WORKER)])
    assert 'iifname "port0" oifname "port2" drop' in rules
    assert 'iifname "port2" oifname "port0" drop' in rules
    assert network.partition_rules([]) == "table bridge lab\ndelete table bridge lab\n"


def test_every_node_knows_every_other_and_the_endpoint_by_name() -> None:
    lines = network.hosts_file(LAB).splitlines()
    assert "10.89.0.1 control-plane.lab" in lines
    assert "10.89.0.13 worker1" in lines


TABLE = b"""\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:094D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2001 1 0000000000000000 100 0
   1: 0B00590A:094C 0C00590A:A1B2 01 00000000:00000000 00:00000000 00000000     0        0 2002 1 0000000000000000 20 4
"""


def test_who_listens_is_read_from_the_kernel_and_connections_do_not_count() -> None:
    assert network.listens(TABLE, 2381)
    assert not network.listens(TABLE, 2380)
    assert not network.listens(TABLE.splitlines()[0], 2381)
