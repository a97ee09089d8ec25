"""The mistakes that people make, and that the answer names the thing, its place and the next step."""

from pathlib import Path

import pytest

from garboard.cli.main import run
from tests.support.cli.patch.commands import PATCH_SET, Workplace

TARGET = ["--target", "kube-apiserver"]
DIFF = ["patch", "diff", "-f", "original.yaml"]
SET = [*DIFF, "--patch-set", "set.yaml"]
KIND = "apiVersion: example.com/v1\nkind: Widget\n"


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        pytest.param(
            {}, [*DIFF, "--target", "kube-apisrver", "--patches", "patches"], "did you mean 'kube-apiserver'?",
            id="misspelt target",
        ),
        pytest.param(
            {}, [*DIFF, *TARGET, "--patches", "patchs"], "cannot list patchs: it is not there\nhint: check the path",
            id="missing directory",
        ),
        pytest.param(
            {"plain/node/a/kube-apiserver.yaml": "{}"}, [*DIFF, *TARGET, "--patches", "plain", "--node", "a"],
            "`touch plain/garboard.yaml`", id="layers without a marker",
        ),
        pytest.param(
            {"plain/kube-apiserver+args.yaml": "profiling: false"}, [*DIFF, *TARGET, "--patches", "plain"],
            "put an empty file garboard.yaml", id="flag patch without a marker",
        ),
        pytest.param(
            {"plain/kube-apiserver.yaml": "spec:\n  containers: {name: x}"}, [*DIFF, *TARGET, "--patches", "plain"],
            "error[wrong-type]: plain/kube-apiserver.yaml:2:3: ", id="map for a list",
        ),
        pytest.param(
            {"plain/kube-apiserver.yaml": "spec:\n  containers:\n  - name: kube-apisrver\n    tty: true\n"},
            [*DIFF, *TARGET, "--patches", "plain"],
            "error[zero-match]: plain/kube-apiserver.yaml:3:5: there is no container 'kube-apisrver' to change, and a"
            " new one needs an image\nhint: did you mean 'kube-apiserver'?", id="misspelt container",
        ),
        pytest.param(
            {"plain/kube-apiserver.yaml": "spec:\n\tpriority: 1"}, [*DIFF, *TARGET, "--patches", "plain"],
            "YAML takes no tabs", id="tab",
        ),
        pytest.param(
            {"set.yaml": PATCH_SET.replace("{kind:", "{knd:")}, SET, "patches[0].target: unknown field 'knd'",
            id="misspelt field of a patch set",
        ),
        pytest.param(
            {"set.yaml": PATCH_SET.replace("PatchSet", "Patchset")}, SET, "kind: PatchSet",
            id="misspelt kind of a patch set",
        ),
        pytest.param(
            {"set.yaml": PATCH_SET.replace("kind: Pod", "labelSelector: a inn (b)")}, SET,
            "set.yaml:4:3: 'a inn (b)' is not a label selector", id="label selector",
        ),
        pytest.param(
            {"original.yaml": KIND}, [*DIFF, "--patch-file", "patch.yaml"], "example.com/v1 Widget",
            id="strategic patch of a custom resource",
        ),
        pytest.param(
            {}, ["patch", "create", "--original", "original.yaml", "--modified", "edited.yaml",
                 "--preconditions", "spec.nodeName"], "hint: write KEY or metadata.KEY", id="precondition",
        ),
    ],
)  # fmt: skip
def test_mistake_is_told_with_the_way_out(
    files: dict[str, str], arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    Workplace.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    assert run(arguments) in (1, 2, 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "\nhint: " in err
