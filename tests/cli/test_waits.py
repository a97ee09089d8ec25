"""A command that waits says what for: here a join to an endpoint where nobody listens."""

import socket
from pathlib import Path

import pytest

from garboard import retry
from garboard.cli.main import run


def test_join_to_a_dead_endpoint_is_not_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(retry, "REPORT_EVERY_S", 0.5)
    with socket.socket() as listener:  # bound, and nobody listens
        listener.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{listener.getsockname()[1]}"
        (tmp_path / "join.yaml").write_text(
            "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ntimeouts: {discovery: 3s}\n"
            f"discovery: {{bootstrapToken: {{token: abcdef.0123456789abcdef, apiServerEndpoint: '{endpoint}',"
            " unsafeSkipCAVerification: true}}\n"
            f"nodeRegistration: {{name: w1, criSocket: 'unix://{tmp_path}/none.sock'}}\n"
        )
        (tmp_path / "tmp").mkdir()
        assert run(["join", "--config", "/join.yaml", "--dry-run", "--rootfs", str(tmp_path)]) == 5
    err = capsys.readouterr().err
    told = [line for line in err.splitlines() if line.startswith("[wait] ")]
    assert told
    assert all(endpoint in line and "for at most" in line for line in told)
