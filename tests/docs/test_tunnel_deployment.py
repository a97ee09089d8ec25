from pathlib import Path

from tests.support.docs.pages import run_examples


def test_examples_of_the_page_run_from_top_to_bottom(tmp_path: Path) -> None:
    done = run_examples("tunnel-deployment.md", tmp_path, at_least=2)
    assert done.stdout.endswith("ok\n")
    assert (tmp_path / "pki/agent-node-7.key").stat().st_mode & 0o777 == 0o600
