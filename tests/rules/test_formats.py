"""Names and addresses in the forms that Kubernetes demands."""

from collections.abc import Callable

import pytest

from garboard.rules import formats

Check = Callable[[str], str | None]


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (formats.dns_label, ("a", "a-b", "9", "x" * 63), ("", "A", "a.b", "-a", "a-", "x" * 64, "a\n")),
        (formats.dns_subdomain, ("a", "a.b", "a-1.b"), ("", "a..b", ".a", "a_b", "x" * 254)),
        (formats.qualified_name, ("a", "A_b.c", "example.com/a"), ("", "/a", "a/", "a/b/c", "A.com/a", "x" * 64)),
        (formats.label_value, ("", "a", "A_b.c-d"), ("a b", "a/b", "-a", "x" * 64)),
        (formats.port_name, ("http", "a-1"), ("80", "HTTP", "a--b", "-a", "a-", "x" * 16, "")),
        (formats.variable_name, ("A", "a b", "a.b-c", "1"), ("", "a=b", "ä", "a\tb")),
        (formats.search_domain, (".", "a.", "_a.b"), ("", "a..b", "A")),
        (formats.local_path, ("a/b", "a", "a.."), ("/a", "../a", "..a", "a/../b")),
        (formats.address, ("10.0.0.1", "fd00::1"), ("10.0.0.01", "::ffff:1.2.3.4", "fe80::1%eth0", "a", "")),
        (formats.sysctl_name, ("net.core.somaxconn", "net/ipv4/tcp_syn_retries"), ("", "A", "a..b")),
    ],
)
def test_form_is_told_from_what_is_none(check: Check, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    assert [text for text in good if check(text) is not None] == []
    assert [text for text in bad if check(text) is None] == []


@pytest.mark.parametrize(
    "text", ["a", "registry.k8s.io/a/b:v1", "localhost:5000/a", "[::1]:5000/a", "A/b", f"a@sha256:{'0' * 64}", "a__b"]
)
def test_reference_of_an_image_is_taken(text: str) -> None:
    assert formats.image_reference(text) is None


@pytest.mark.parametrize("text", ["", "a b", "A", "a:", "a//b", "a@sha256:00", "0" * 64, "a/B", "a:b:c"])
def test_reference_that_the_kubelet_cannot_read_is_refused(text: str) -> None:
    assert formats.image_reference(text) is not None
