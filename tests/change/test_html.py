"""The page of a plan: whole, safe whatever the texts are, and opened in a real browser."""

import html
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from garboard.change.html import plan_html
from garboard.documents import Json
from tests.support.change.plan_documents import DIFF, node, plan
from tests.support.html_pages import HOSTILE, outline, shown

PLAIN = outline(plan_html(plan(), cluster="c", made_at="now"))


def hostile(value: Json, text: str) -> Json:
    """Return a document with a text in place of every text of it, but for the words that choose a style."""
    if isinstance(value, dict):
        return {
            key: each if key in ("verdict", "after", "node") else hostile(each, text) for key, each in value.items()
        }
    if isinstance(value, list):
        return [hostile(each, text) for each in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_others_are_shown_and_do_nothing(text: str) -> None:
    document = hostile(dict(plan()), text)
    assert isinstance(document, dict)
    found = outline(plan_html(document, cluster=text, made_at=text))
    assert found.tags == PLAIN.tags
    assert found.attributes == PLAIN.attributes
    assert found.text.count(shown(text)) > 20
    assert not re.search("[\u202e\u2066\x00\x1b\u2028]", found.text)


@pytest.mark.parametrize("text", HOSTILE)
def test_words_that_choose_a_style_choose_none_if_they_are_not_known(text: str) -> None:
    attributes: Json = [{"path": "a", "from": [text, {"b": text}], "to": 1, "verdict": text}]
    found = outline(plan_html(plan(verdict=text, attributes=attributes, nodes=[{"node": text, "steps": []}])))
    assert found.tags <= PLAIN.tags
    assert found.attributes == PLAIN.attributes


def test_page_has_everything_of_the_plan() -> None:
    text = PLAIN.text
    for each in (
        "apiServer.extraArgs[profiling]", "shrinks-capacity", "node w1 runs 35 pods", "kubectl drain w1",
        "Node cp1", "2 nodes, one after the other: cp2, cp3", "because apiServer.extraArgs[profiling] changed",
        "restarts kube-apiserver", "not seen: assumed to be as rendered", "ConfigMap kube-system/kubeadm-config",
        "Tell whoever profiles the API servers.", "sha256:" + "ab" * 32,
    ):  # fmt: skip
        assert each in text, each
    for line in DIFF.splitlines():
        assert line in text


def test_objects_stand_where_they_are_written() -> None:
    text = PLAIN.text
    assert text.index("Node cp1") < text.index("ConfigMap kube-system/kubeadm-config") < text.index("cp2, cp3")


def test_many_nodes_that_do_the_same_are_told_once() -> None:
    page = plan_html(plan(nodes=[node(f"w{number:03}") for number in range(300)], objects=[]))
    assert "300 nodes, one after the other" in page
    assert len(page) < 20_000


@pytest.mark.parametrize("document", [{}, {"verdict": "none"}, {"nodes": [1], "objects": "x", "attributes": [None]}])
def test_page_of_a_plan_that_has_nothing_is_whole(document: dict[str, Json]) -> None:
    assert "Change plan" in outline(plan_html(document)).text


def test_nothing_is_loaded_and_nothing_runs() -> None:
    page = plan_html(plan())
    assert "default-src &#x27;none&#x27;" in page
    assert PLAIN.tags.isdisjoint({"script", "link", "img", "iframe", "object", "form", "a"})
    assert "src" not in PLAIN.attributes
    assert not re.search(r"url\(|@import|https?:", html.unescape(page).partition("</style>")[0])


def test_equal_plans_give_equal_pages() -> None:
    assert plan_html(plan()) == plan_html(plan())


_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


def browse(folder: Path, page: str, *words: str) -> str:
    """Open a page in the browser, and return what it prints."""
    chromium = shutil.which("chromium")
    assert chromium is not None, "tools/setup/system-packages browser"
    (folder / "plan.html").write_text(page)
    done = subprocess.run(
        [chromium, *_FLAGS, f"--user-data-dir={folder / 'profile'}", *words, f"file://{folder / 'plan.html'}"],
        capture_output=True, text=True, timeout=200, check=True, cwd=folder,
    )  # fmt: skip
    return done.stdout


def pixels(picture: Path) -> tuple[int, int, set[bytes]]:
    """Return width, height and colours of a PNG of three or four channels with eight bits each."""
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8
    size, place, packed = {2: 3, 6: 4}[kind], 8, b""
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        if data[place + 4 : place + 8] == b"IDAT":
            packed += data[place + 8 : place + 8 + length]
        place += length + 12
    raw, before, colours = zlib.decompress(packed), bytes(width * size), set[bytes]()
    for row in range(height):
        start = row * (width * size + 1)
        before = _unfiltered(raw[start], raw[start + 1 : start + 1 + width * size], before, size)
        colours |= {before[each : each + 3] for each in range(0, len(before), size)}
    return width, height, colours


def _unfiltered(kind: int, line: bytes, above: bytes, size: int) -> bytes:
    """Return a row of a PNG as it was before its filter (PNG specification, 9.2)."""
    out = bytearray(line)
    for index, value in enumerate(line):
        left = out[index - size] if index >= size else 0
        up = above[index]
        corner = above[index - size] if index >= size else 0
        nearest = min((left, up, corner), key=lambda each: abs(left + up - corner - each))
        out[index] = (value + (0, left, up, (left + up) // 2, nearest)[kind]) & 255
    return bytes(out)


@pytest.mark.real
def test_browser_shows_the_page_with_its_colours(tmp_path: Path) -> None:
    page = plan_html(plan(), cluster="k8s.example.com:6443")
    browse(tmp_path, page, "--window-size=700,450", f"--screenshot={tmp_path / 'light.png'}")
    dark = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    browse(tmp_path, page, "--window-size=700,450", *dark, f"--screenshot={tmp_path / 'dark.png'}")
    *size, light = pixels(tmp_path / "light.png")
    assert size == [700, 450]
    # The page behind the cards, an allowed and an advised attribute.
    assert {b"\xf6\xf7\xf9", b"\x1f\x7a\x45", b"\x8a\x5a\x00"} <= light
    assert {b"\x12\x16\x1c", b"\x62\xcf\x8f", b"\xe6\xb4\x55"} <= pixels(tmp_path / "dark.png")[2]


@pytest.mark.real
def test_browser_runs_nothing_of_hostile_texts(tmp_path: Path) -> None:
    document = hostile(dict(plan()), "".join(HOSTILE))
    assert isinstance(document, dict)
    shown_by_browser = browse(tmp_path, plan_html(document, cluster=HOSTILE[0]), "--dump-dom")
    found = outline(shown_by_browser)
    assert "<title>Change plan for &lt;script&gt;" in shown_by_browser
    assert found.tags == PLAIN.tags


@pytest.mark.real
def test_page_can_be_printed(tmp_path: Path) -> None:
    browse(tmp_path, plan_html(plan()), f"--print-to-pdf={tmp_path / 'plan.pdf'}", "--no-pdf-header-footer")
    printed = (tmp_path / "plan.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 4
