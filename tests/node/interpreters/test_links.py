"""Addresses of this node; how links are added and removed is tested in `tests/tunnel/deploy/test_link.py`."""

import pytest

from garboard.node.interpreters.links import NodeLinks


@pytest.mark.parametrize(("address", "is_ours"), [("127.0.0.1", True), ("203.0.113.9", False)])
def test_address_is_known_if_an_interface_has_it(address: str, is_ours: bool) -> None:
    assert NodeLinks().has_address(address) is is_ours
