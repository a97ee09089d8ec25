from pathlib import Path

from tests.support.docs.pages import run_examples


def test_examples_of_the_page_run_from_top_to_bottom(tmp_path: Path) -> None:
    done = run_examples("certificates.md", tmp_path, at_least=4)
    rows = [line for line in done.stdout.splitlines() if line.endswith("yes     ")]
    assert len(rows) == 10, done.stdout
    assert "server: https://api.example.com:6443" in (tmp_path / "alice.conf").read_text()
