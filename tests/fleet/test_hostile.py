"""Input that wants out of the folder, wants all of the memory, or brings secrets along: refused or scrubbed."""

import os
import time
from pathlib import Path

import pytest

from garboard.errors import BadDocument
from garboard.fleet import CustomizationFailed, Irregular, ManifestTree, customize, load_documents
from garboard.fleet.customize import TreeEntry, compile_customization
from garboard.fleet.documents import ObjectKey
from tests.support.fleet.folder import FleetFolder
from tests.support.fleet.pool import FILE, MANIFESTS, customization, documents_of, rules

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
PATCHES = "patches: [{op: add, path: /metadata/x, value: made}]"


def reason_of(glob: str, entries: dict[str, TreeEntry] | None = None) -> str:
    """Return why an entry with this glob fails; nothing if it does not."""
    quoted = glob.replace("'", "''")
    spec = f"installerManifestPatches:\n- manifestSelector: {{glob: '{quoted}'}}\n  {PATCHES}\n"
    written = documents_of(customization("site", spec)).customizations[ObjectKey("default", "site")]
    try:
        customize(ManifestTree.of({**MANIFESTS, **(entries or {})}), [compile_customization(written)], rules())
    except CustomizationFailed as error:
        return str(error.failures[0].reason)
    return ""


@pytest.mark.parametrize(
    "glob",
    ["/etc/passwd", "//etc/*", "../x", "..", "a/..", "a/../../b", "./../x", "../manifests-2/x.yaml", "*/../../x",
     "manifests/../../made2/*.yaml", "[.]./../x"],
)  # fmt: skip
def test_glob_that_leads_out_is_refused_as_an_escape(glob: str) -> None:
    assert reason_of(glob) == "ManifestPatchPathEscape"


@pytest.mark.parametrize(
    "glob", ["[.][.]/x", r"\.\./x", ".?/x", "?./x", ".[.]/etc/passwd", "..*/x", "...", "~/x", "$HOME/x"]
)
def test_glob_that_spells_the_parent_another_way_matches_nothing(glob: str) -> None:
    assert reason_of(glob) == "ManifestPatchNoMatch"


@pytest.mark.parametrize(
    "name",
    ["auth/kubeadmin-password", "tls/root-ca.key", "tls/journal/x.yaml", ".openshift_install_state.json",
     ".openshift_install.log", "metadata.json", "bootstrap.ign", "terraform-provider", "terraform/x.yaml",
     "bin/x.yaml", "install-config.yaml", "manifests/.hidden.yaml", ".cache/x.yaml"],
)  # fmt: skip
def test_file_of_the_installer_itself_is_not_patched_by_name_glob_or_content(name: str) -> None:
    entries: dict[str, TreeEntry] = {name: b"kind: Mine\nmetadata: {}\n"}
    folder, _, last = name.rpartition("/")
    assert reason_of(name, entries) == "ManifestPatchProtected"
    assert reason_of(f"{folder}/{last[:2]}*".lstrip("/"), entries) == "ManifestPatchProtected"
    spec = f"installerManifestPatches:\n- manifestSelector: {{kind: Mine}}\n  {PATCHES}\n"
    written = documents_of(customization("site", spec)).customizations[ObjectKey("default", "site")]
    with pytest.raises(CustomizationFailed, match="no manifest matches"):
        customize(ManifestTree.of(entries), [compile_customization(written)], rules())


def test_links_of_every_kind_in_a_real_folder_lead_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = tmp_path / "made2"  # whose name begins like that of the folder
    outside.mkdir()
    (outside / "x.yaml").write_text("kind: X\nmetadata: {}\n")
    for target, glob in ((outside / "x.yaml", "manifests/in.yaml"), (outside, "linked/x.yaml"), (outside, "linked/*")):
        spec = f"installerManifestPatches:\n- manifestSelector: {{glob: '{glob}'}}\n  {PATCHES}\n"
        folder = FleetFolder(tmp_path, {"site-a": spec})
        link = folder.manifests / ("manifests/in.yaml" if glob.endswith("in.yaml") else "linked")
        link.symlink_to(target)
        assert folder.run("render", "--check") == 3
        link.unlink()
        assert "error[manifest-path-escape]" in capsys.readouterr().err
    assert (outside / "x.yaml").read_text() == "kind: X\nmetadata: {}\n"


def test_pipe_and_unreadable_files_are_told_and_nothing_waits(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path, {})
    os.mkfifo(folder.manifests / "manifests/pipe.yaml")
    assert folder.render() == 0
    assert not (folder.out / "site-a/manifests/pipe.yaml").exists()
    assert reason_of("manifests/pipe.yaml", {"manifests/pipe.yaml": Irregular("no regular file")}) == "ManifestIOError"


@pytest.mark.parametrize("where", ["document", "install config", "patch", "manifest"])
def test_bomb_of_aliases_is_refused(where: str) -> None:
    started = time.monotonic()
    indented = "".join(f"    {line}\n" for line in BOMB.splitlines())
    if where == "manifest":
        assert reason_of("manifests/bomb.yaml", {"manifests/bomb.yaml": BOMB.encode()}) == "ManifestIOError"
    elif where == "patch":
        spec = f"installerManifestPatches:\n- manifestSelector: {{kind: X}}\n  type: merge\n  patch: |\n{indented}"
        written = documents_of(customization("site", spec)).customizations[ObjectKey("default", "site")]
        with pytest.raises(CustomizationFailed, match="excessive aliasing"):
            compile_customization(written)
    else:
        with pytest.raises(BadDocument, match="excessive aliasing"):
            load_documents([(FILE, BOMB.encode())])
    assert time.monotonic() - started < 10


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(BadDocument, match="nested deeper than"):
        load_documents([(FILE, b"[" * 100_000)])
    deep = "[" * 5_000 + "]" * 5_000
    spec = f"installConfigPatches: [{{op: add, path: /a, valueJSON: '{deep}'}}]"
    written = documents_of(customization("site", spec)).customizations[ObjectKey("default", "site")]
    with pytest.raises(CustomizationFailed, match="not JSON"):
        compile_customization(written)


def test_patch_of_ten_megabytes_is_refused_before_it_is_parsed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = "x" * 10_000_000
    folder = FleetFolder(tmp_path, {"site-a": f"installConfigPatches: [{{op: add, path: /a, value: {value}}}]"})
    started = time.monotonic()
    assert folder.run("render", "--check") == 3
    assert time.monotonic() - started < 10
    told = capsys.readouterr().err
    assert "error[too-large]" in told
    assert len(told) < 1_000


def test_secret_that_a_patch_writes_is_in_no_file_and_no_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = """
installConfigPatches:
- {op: add, path: /platform/none/password, value: patched-secret-1}
- {op: add, path: /credentials, valueJSON: '{"clientSecret": "patched-secret-2"}'}
installerManifestPatches:
- manifestSelector: {kind: Secret}
  patches:
  - {op: add, path: /stringData/any, value: patched-secret-3}
- manifestSelector: {kind: Network}
  type: merge
  patch: {spec: {token: patched-secret-4}}
"""
    folder = FleetFolder(tmp_path, {"site-a": spec})
    (folder.manifests / "openshift/secret.yaml").write_text("apiVersion: v1\nkind: Secret\nstringData: {}\n")
    assert folder.render("--deployment", "edge-site-a") == 0
    assert folder.run("explain", "--deployment", "edge-site-a") == 0
    assert folder.run("explain", "--deployment", "edge-site-a", "-o", "json") == 0
    told = capsys.readouterr()
    written = "".join((folder.out / name).read_text() for name in folder.rendered())
    assert "patched-secret" not in written
    assert "patched-secret" not in told.out + told.err
    assert "REDACTED" in written


def test_secret_in_a_patch_that_fails_is_not_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = """
installerManifestPatches:
- manifestSelector: {kind: Network}
  patches:
  - {op: test, path: /spec/password, value: patched-secret-5}
"""
    folder = FleetFolder(tmp_path, {"site-a": spec, "site-b": spec.replace("test", "replace")})
    assert folder.run("render", "--check", "--output", "json") == 3
    told = capsys.readouterr()
    assert "patched-secret" not in told.out + told.err
