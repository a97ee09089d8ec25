from garboard.lab.binaries.build import ModuleFile, render_go_mod, staging_version
from garboard.lab.binaries.pins import Module

ORIGINAL = ModuleFile.from_json(
    {
        "Go": "1.26.0",
        "Godebug": [{"Key": "default", "Value": "go1.26"}],
        "Require": [
            {"Path": "k8s.io/api", "Version": "v0.0.0"},
            {"Path": "k8s.io/utils", "Version": "v0.0.0-20260108192941-914a6e750570"},
            {"Path": "github.com/spf13/cobra", "Version": "v1.10.2"},
        ],
    }
)


def test_staging_modules_are_taken_at_the_version_of_the_release() -> None:
    module = Module("k8s.io/kubernetes", {"v1.36.4": "h1:x"}, staging=True)
    assert render_go_mod(module, "v1.36.4", ORIGINAL).splitlines() == [
        "module garboard.build",
        "",
        "go 1.26.0",
        "godebug default=go1.26",
        "require k8s.io/kubernetes v1.36.4",
        "replace k8s.io/api => k8s.io/api v0.36.4",
    ]


def test_a_module_kept_beside_another_is_taken_at_the_same_version() -> None:
    module = Module("example.com/proxy", {}, beside=("example.com/proxy/client",))
    text = render_go_mod(module, "v0.36.0", ORIGINAL)
    assert "replace example.com/proxy/client => example.com/proxy/client v0.36.0\n" in text
    assert "k8s.io/api" not in text


def test_staging_version_keeps_minor_and_patch() -> None:
    assert staging_version("v1.37.1") == "v0.37.1"
