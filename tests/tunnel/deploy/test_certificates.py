"""The tunnel's certificates, as openssl reads them."""

import subprocess
from pathlib import Path

import pytest

from garboard.cli.main import run


def openssl(*arguments: str | Path) -> str:
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def make(folder: Path, *more: str) -> int:
    return run(["tunnel", "certs", "-o", str(folder), "--server-name", "a.test", "--server-name", "10.0.0.1", *more])


def test_every_place_gets_a_certificate_that_is_good_for_it(tmp_path: Path) -> None:
    assert make(tmp_path) == 0
    for name, purpose in (("server", "sslserver"), ("front", "sslserver"), ("apiserver", "sslclient"),
                          ("agent", "sslclient")):  # fmt: skip
        openssl("verify", "-CAfile", tmp_path / "ca.crt", "-purpose", purpose, tmp_path / f"{name}.crt")
        assert (tmp_path / f"{name}.key").stat().st_mode & 0o777 == 0o600
    text = openssl("x509", "-in", tmp_path / "server.crt", "-noout", "-ext", "subjectAltName")
    assert "DNS:a.test" in text
    assert "IP Address:10.0.0.1" in text


def test_what_is_there_stays_and_one_more_agent_is_added(tmp_path: Path) -> None:
    make(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert make(tmp_path, "--agent", "node7") == 0
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    openssl("verify", "-CAfile", tmp_path / "ca.crt", "-purpose", "sslclient", tmp_path / "agent-node7.crt")
    assert "system:konnectivity-agent:node7" in openssl(
        "x509", "-in", tmp_path / "agent-node7.crt", "-noout", "-subject"
    )


@pytest.mark.parametrize("name", ["ca.key", "ca.crt", "server.key", "agent.crt"])
def test_half_of_a_pair_is_refused_and_the_other_half_stays(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path)
    (tmp_path / name).unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert make(tmp_path) == 3
    assert "only one is there" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_name_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tunnel", "certs", "-o", str(tmp_path), "--server-name", "not a name"]) == 2
    assert "neither a DNS name nor an address" in capsys.readouterr().err
