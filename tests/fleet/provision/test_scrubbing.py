"""Output without secrets, however it is cut into chunks."""

import base64
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.fleet.provision import REDACTED_LINE, OutputScrubber, ScrubbedLines
from garboard.fleet.provision.scrubbing import LONGEST_LINE

SECRET = 'pull "secret"/of this test'


def scrubbed(*chunks: bytes, secrets: tuple[str, ...] = (SECRET,)) -> list[str]:
    taken: list[str] = []
    lines = ScrubbedLines(OutputScrubber(secrets), taken.append)
    for each in chunks:
        lines.feed(each)
    lines.end()
    return taken


@given(st.lists(st.integers(0, 60), max_size=8))
def test_secret_is_found_wherever_chunks_end(cuts: list[int]) -> None:
    text = f"before {SECRET} after\nnext line {SECRET}".encode()
    at = [0, *sorted(cuts), len(text)]
    chunks = [text[begin:end] for begin, end in pairwise(at)]
    assert scrubbed(*chunks) == ["before REDACTED after", "next line REDACTED"]


@pytest.mark.parametrize(
    "form",
    [SECRET, base64.b64encode(SECRET.encode()).decode(), quote(SECRET, safe=""), SECRET.replace('"', '\\"')],
    ids=["as it is", "base64", "in a URL", "in JSON"],
)
def test_secret_is_found_in_the_forms_in_which_it_is_printed(form: str) -> None:
    assert scrubbed(f"x={form};".encode()) == ["x=REDACTED;"]


@pytest.mark.parametrize(
    "line",
    [
        "level=info PassWord is x", "login with kubeadmin and its password", "-----BEGIN RSA PRIVATE KEY-----",
        "Authorization: Bearer abcdefghijklmnopqrst", 'x="token": "0123456789"', "    client-key-data: LS0t",
    ],
)  # fmt: skip
def test_line_that_looks_like_a_secret_is_replaced_as_a_whole(line: str) -> None:
    assert scrubbed(line.encode(), secrets=()) == [REDACTED_LINE]


def test_bootstrap_tokens_are_replaced() -> None:
    assert scrubbed(b"join abcdef.0123456789abcdef now", secrets=()) == ["join REDACTED now"]


def test_lines_of_a_key_are_secrets_of_their_own() -> None:
    key = "-----BEGIN X-----\nMIIEowIBAAKCAQEA1234567890\n-----END X-----\n"
    assert scrubbed(b"of it: MIIEowIBAAKCAQEA1234567890", secrets=(key,)) == ["of it: REDACTED"]


def test_texts_of_a_pull_secret_are_secrets_of_their_own() -> None:
    auth = base64.b64encode(b"user:registry-password").decode()
    pull_secret = f'{{"auths": {{"registry.example.com": {{"auth": "{auth}", "email": "me"}}}}}}'
    said = f"me: {auth} registry-password".encode()
    assert scrubbed(
        said,
        secrets=(pull_secret,),
    ) == [REDACTED_LINE]
    assert OutputScrubber((pull_secret,)).known(said.decode()) == "me: REDACTED REDACTED"


def test_ordinary_output_stays() -> None:
    said = ["level=info msg=Waiting up to 20m0s", "tokens of the cluster are made", "", "ünï \N{SNOWMAN}"]
    assert scrubbed("\n".join(said).encode()) == said


def test_line_without_an_end_is_not_kept_in_memory_and_not_cut_inside_a_secret() -> None:
    half = SECRET[:10].encode()
    long = b"x" * LONGEST_LINE + half
    assert scrubbed(long, SECRET[10:].encode() + b"x" * LONGEST_LINE, b"\nshort\n") == [REDACTED_LINE, "short"]


def test_metadata_is_scrubbed_at_every_depth() -> None:
    document = {"a": [{"PASSWORD": {"deep": 1}, "userName": "me", "b": f"x{SECRET}"}], "password": None, "n": 1}
    found = OutputScrubber((SECRET,)).document(document)  # type: ignore[arg-type]  # it is JSON
    assert found == {
        "a": [{"PASSWORD": "REDACTED", "userName": "REDACTED", "b": "xREDACTED"}], "password": "REDACTED", "n": 1,
    }  # fmt: skip


def test_secret_that_is_learnt_is_known_from_then_on() -> None:
    scrubber = OutputScrubber()
    assert scrubber.line("it is hunter2hunter2") == "it is hunter2hunter2"
    scrubber.learn("hunter2hunter2")
    assert scrubber.line("it is hunter2hunter2") == "it is REDACTED"
