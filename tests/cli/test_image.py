"""`garboard image` and `tunnel manifests` where they cannot write; what they write is tested beside the library."""

from pathlib import Path

import pytest

from garboard.cli.main import run


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("image", "-o"), id="an archive"),
        pytest.param(("tunnel", "image", "-o"), id="an archive, by its earlier name"),
        pytest.param(("tunnel", "manifests", "--server-host", "konnectivity.example.com", "-o"), id="a folder"),
    ],
)
def test_place_that_cannot_be_written_is_an_error_of_ours(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run([*words, str(tmp_path / "file" / "output")]) == 1
    assert capsys.readouterr().err.startswith("error[unwritable]: cannot ")
