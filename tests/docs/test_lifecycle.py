import json
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_examples_of_the_page_run_from_top_to_bottom(tmp_path: Path) -> None:
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    assert script.count("garboard ") >= 6
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "plan.json").read_text())["steps"]
    assert "server: https://api.example.com:6443" in (tmp_path / "admin.conf").read_text()
    assert "server: https://192.0.2.10:6443" in (tmp_path / "kubelet.conf").read_text()
    assert (tmp_path / "other/etcd/peer.key").exists()
    assert "Using existing ca certificate authority" in done.stderr
