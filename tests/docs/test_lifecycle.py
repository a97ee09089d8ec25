import json
from pathlib import Path

from tests.support.docs.pages import run_examples


def test_examples_of_the_page_run_from_top_to_bottom(tmp_path: Path) -> None:
    done = run_examples("lifecycle.md", tmp_path, at_least=6)
    assert json.loads((tmp_path / "plan.json").read_text())["steps"]
    assert "server: https://api.example.com:6443" in (tmp_path / "admin.conf").read_text()
    assert "server: https://192.0.2.10:6443" in (tmp_path / "kubelet.conf").read_text()
    assert (tmp_path / "other/etcd/peer.key").exists()
    assert "Using existing ca certificate authority" in done.stderr
