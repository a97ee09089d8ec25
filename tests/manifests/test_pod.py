import pytest

from garboard.manifests.pod import probe_host


@pytest.mark.parametrize(("address", "host"), [("0.0.0.0", ""), ("::", ""), ("10.0.0.1", "10.0.0.1"), ("", "")])
def test_a_component_that_listens_everywhere_is_asked_at_the_pods_address(address: str, host: str) -> None:
    assert probe_host(address) == host
