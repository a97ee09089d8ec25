import pytest

from garboard.manifests.etcd import etcd_probes
from garboard.model.component import Arg, LocalEtcd
from tests.support.manifests.nodes import node


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        ("https://10.9.9.9:3381,http://x:1", ("10.9.9.9", 3381, "HTTPS")),
        ("http://[fd00::1]:2382", ("fd00::1", 2382, "HTTP")),
        ("http://[fd00::1]", ("fd00::1", 2381, "HTTP")),
        ("http://host", ("host", 2381, "HTTP")),
        ("http://host:99999", ("host", 2381, "HTTP")),
        ("http://:2400", ("127.0.0.1", 2400, "HTTP")),
        ("127.0.0.1:2400", ("127.0.0.1", 2381, "HTTP")),
        ("localhost:2400", ("127.0.0.1", 2381, "HTTP")),
        ("", ("127.0.0.1", 2381, "HTTP")),
        ("http://user@host:2400/path", ("host", 2400, "HTTP")),
    ],
)
def test_etcd_is_asked_at_the_first_metrics_url(urls: str, expected: tuple[str, int, str]) -> None:
    probes = etcd_probes(node(), LocalEtcd(extra_args=(Arg("listen-metrics-urls", urls),)))
    assert (probes.host, probes.port, probes.scheme) == expected
