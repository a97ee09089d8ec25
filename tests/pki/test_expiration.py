from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import GarboardError
from garboard.pki.expiration import (
    ExpiringSoon,
    expiration_report,
    expiring,
    human_duration,
    refuse_expiring,
    report_document,
    report_text,
)
from tests.support.pki.fixtures import NOW
from tests.support.pki.nodes import full_node, observe

LATER = NOW + timedelta(days=10)


def test_table_of_a_whole_node() -> None:
    pki, conf = full_node()
    del conf.files["super-admin.conf"]
    text = report_text(expiration_report(observe(pki, conf), LATER), LATER)
    lines = text.splitlines()
    assert lines[0].split("  ")[0] == "CERTIFICATE"
    assert lines[1] == (
        "admin.conf                   Nov 15, 2027 12:00 UTC   354d            ca                      no      "
    )
    assert lines[11] == "!MISSING! super-admin.conf".ljust(len(lines[1]) - len("no      "))
    assert lines[12] == ""
    assert lines[14] == "ca                      Nov 12, 2036 12:00 UTC   9y              no      "
    assert len(lines) == 17


def test_document_names_what_is_missing() -> None:
    pki, conf = full_node()
    del pki.files["apiserver.crt"]
    document = report_document(expiration_report(observe(pki, conf), LATER), LATER)
    certificates = document["certificates"]
    assert isinstance(certificates, list)
    assert certificates[1] == {
        "name": "apiserver",
        "expirationDate": None,
        "residualTime": 0,
        "externallyManaged": False,
        "missing": True,
    }
    assert certificates[2] == {
        "name": "apiserver-etcd-client",
        "expirationDate": "2027-11-15T12:00:00Z",
        "residualTime": 355 * 86400 - 1,
        "externallyManaged": False,
        "caName": "etcd-ca",
        "missing": False,
    }


def test_external_etcd_leaves_its_certificates_out() -> None:
    report = expiration_report(observe(*full_node()), NOW, has_external_etcd=True)
    assert [each.name for each in report.authorities] == ["ca", "front-proxy-ca"]
    assert not [each.name for each in report.certificates if "etcd" in each.name]


@pytest.mark.parametrize(
    ("days", "found"),
    [
        pytest.param(354, 0, id="a day too early"),
        pytest.param(355, 11, id="all leafs and kubeconfigs"),
        pytest.param(3651, 14, id="authorities too"),
    ],
)
def test_what_expires_within_a_time_is_told_the_first_one_first(days: int, found: int) -> None:
    pki, conf = full_node()
    report = expiration_report(observe(pki, conf), LATER)
    names = [each.name for each in expiring(report, LATER, timedelta(days=days))]
    assert len(names) == found
    assert names[:11] == sorted(names[:11])
    assert names[11:] == sorted(names[11:])


def test_refusal_names_what_expires_and_what_is_missing_does_not_count() -> None:
    pki, conf = full_node()
    del pki.files["apiserver.crt"]
    report = expiration_report(observe(pki, conf), LATER)
    refuse_expiring(report, LATER, timedelta(days=30))
    with pytest.raises(ExpiringSoon, match=r"admin\.conf on 2027-11-15 12:00 UTC") as caught:
        refuse_expiring(report, LATER, timedelta(days=356))
    assert "apiserver on" not in caught.value.message
    assert "authority" not in str(caught.value.hint)
    with pytest.raises(ExpiringSoon) as caught:
        refuse_expiring(report, LATER, timedelta(days=4000))
    assert "an authority is not renewed" in str(caught.value.hint)


def test_ca_without_key_means_externally_managed() -> None:
    pki, conf = full_node()
    del pki.files["front-proxy-ca.key"]
    report = expiration_report(observe(pki, conf), NOW)
    external = [each.name for each in (*report.certificates, *report.authorities) if each.is_externally_managed]
    assert external == ["front-proxy-client", "front-proxy-ca"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        pytest.param("apiserver.crt", b"?", "apiserver.crt: no valid certificate", id="unreadable leaf"),
        pytest.param("ca.crt", b"?", "ca.crt: no valid certificate", id="unreadable CA"),
        pytest.param("admin.conf", b"[]", "not a kubeconfig", id="no kubeconfig"),
    ],
)
def test_unreadable_files_are_an_error(name: str, data: bytes, reason: str) -> None:
    pki, conf = full_node()
    (conf if name.endswith(".conf") else pki).files[name] = data
    with pytest.raises(GarboardError, match=reason):
        expiration_report(observe(pki, conf), NOW)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-100, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (600, "10m"),
        (10799, "179m"), (10800, "3h"), (10860, "3h1m"), (28800, "8h"), (172799, "47h"), (172800, "2d"),
        (176400, "2d1h"), (8 * 86400, "8d"), (729 * 86400, "729d"), (730 * 86400, "2y"), (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"), (3650 * 86400, "10y"),
    ],
)  # fmt: skip
def test_length_of_time_as_kubectl_shows_it(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


@given(st.integers(-(10**10), 10**12))
def test_every_length_of_time_has_a_text(seconds: int) -> None:
    assert human_duration(seconds)
