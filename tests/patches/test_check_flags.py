"""Command lines: flags, values and feature gates against the programs of both minors."""

import pytest

from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches import Finding, Patch, PatchType, Severity, SourceText, check_patch, find_target
from garboard.schema import load_schema

V1_36, V1_37 = SUPPORTED_VERSIONS[:2]


def check(
    text: str,
    target: str = "kube-apiserver",
    type_: PatchType = PatchType.STRATEGIC,
    *,
    version: KubernetesVersion = V1_37,
) -> list[Finding]:
    schema = load_schema(version)
    patch = Patch.from_yaml(SourceText("patch.yaml", text), type_)
    found = find_target(target, version)
    return check_patch(patch, found.shape(schema), schema, found.component)


def command(*words: str, name: str = "kube-apiserver") -> str:
    lines = "".join(f"    - {word}\n" for word in words)
    return f"spec:\n  containers:\n  - name: {name}\n    command:\n{lines}"


def told(findings: list[Finding]) -> list[tuple[str, int, int]]:
    return [(each.error_class, each.position.line, each.position.column) for each in findings]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("kube-apiserver", "--profiling=false", "--v=2"), id="flags with values"),
        pytest.param(("kube-apiserver", "--allow-privileged", "--audit-log-maxage", "'30'"), id="values as next words"),
        pytest.param(("/usr/bin/kube-apiserver", "--profiling"), id="the program by its path"),
        pytest.param(("kube-apiserver", "--enable_admission_plugins=NodeRestriction"), id="underscores for dashes"),
        pytest.param(("kube-apiserver", "-v=2"), id="a shorthand"),
        pytest.param(("kube-apiserver", "--feature-gates=AllBeta=false,kube:AllAlpha=false"), id="feature gates"),
        pytest.param(("kube-apiserver", "--feature-gates=$(GATES)"), id="a value from the environment"),
        pytest.param(
            ("kube-apiserver", "--request-timeout=1m30s", "--max-requests-inflight=0x10"), id="numbers and times"
        ),
        pytest.param(("kube-apiserver", "--", "--nope"), id="words after two dashes"),
        pytest.param(("/bin/sh", "-c", "exec kube-apiserver --nope"), id="another program"),
    ],
)
def test_command_that_the_program_accepts_has_no_findings(words: tuple[str, ...]) -> None:
    assert check(command(*words)) == []


@pytest.mark.parametrize(
    ("word", "rule", "hint"),
    [
        pytest.param("--profilng=false", "unknown-flag", "did you mean --profiling?", id="misspelt flag"),
        pytest.param("--nonsense-zzz", "unknown-flag", "kube-apiserver refuses to start with it", id="no such flag"),
        pytest.param("--profiling=maybe", "bad-flag-value", None, id="a boolean that is none"),
        pytest.param("--request-timeout=5", "bad-flag-value", None, id="a duration without a unit"),
        pytest.param("--secure-port=https", "bad-flag-value", None, id="a port that is no number"),
        pytest.param(
            "--enable-admission-plugins=NodeRestriction,PodSecurityy",
            "bad-flag-value",
            "did you mean 'PodSecurity'?",
            id="no such admission plugin",
        ),
        pytest.param("--feature-gates=AllAlfa=true", "unknown-feature-gate", "did you mean 'AllAlpha'?", id="no gate"),
        pytest.param("--feature-gates=AllAlpha=yes", "bad-flag-value", None, id="a gate without a boolean"),
        pytest.param("--feature-gates=AllAlpha", "bad-flag-value", None, id="a gate without a value"),
    ],
)
def test_word_that_stops_the_program_is_found_at_its_place(word: str, rule: str, hint: str | None) -> None:
    findings = check(command("kube-apiserver", "--v=2", word))
    assert told(findings) == [(rule, 7, 7)]
    assert findings[0].hint == hint


def test_value_as_the_next_word_is_checked_too() -> None:
    assert told(check(command("kube-apiserver", "--feature-gates", "Nope=true"))) == [("unknown-feature-gate", 6, 7)]


def test_locked_gate_cannot_be_turned() -> None:
    component = load_schema(V1_37).component("kube-apiserver")
    assert component is not None
    locked = next(name for name, gate in component.feature_gates.items() if gate.is_locked and gate.default)
    assert check(command("kube-apiserver", f"--feature-gates={locked}=true")) == []
    assert told(check(command("kube-apiserver", f"--feature-gates={locked}=false"))) == [("locked-feature-gate", 6, 7)]


def test_deprecated_flag_is_a_warning() -> None:
    [finding] = check(command("kube-apiserver", "--default-watch-cache-size=1"))
    assert (finding.error_class, finding.severity) == ("deprecated-flag", Severity.WARNING)


@pytest.mark.parametrize(
    ("target", "word", "in_1_36", "in_1_37"),
    [
        pytest.param(
            "kube-controller-manager", "--concurrent-service-syncs=1", None, "unknown-flag", id="removed flag"
        ),
        pytest.param("kube-controller-manager", "--concurrent-disruption-syncs=1", "unknown-flag", None, id="new flag"),
        pytest.param(
            "kube-controller-manager", "--controllers=-service-lb-controller", None, "bad-flag-value", id="gone"
        ),
        pytest.param("kube-apiserver", "--enable-admission-plugins=JobValidation", None, "bad-flag-value", id="plugin"),
        pytest.param(
            "kube-scheduler", "--feature-gates=SidecarContainers=true", None, "unknown-feature-gate", id="removed gate"
        ),
        pytest.param(
            "etcd", "--experimental-corrupt-check-time=1h", "deprecated-flag", "unknown-flag", id="etcd's old names"
        ),
        pytest.param("etcd", "-quota-backend-bytes=1", None, None, id="etcd takes one dash"),
        pytest.param("etcd", "-quota_backend_bytes=1", "unknown-flag", "unknown-flag", id="etcd takes no underscores"),
    ],
)
def test_flags_are_those_of_the_exact_minor(target: str, word: str, in_1_36: str | None, in_1_37: str | None) -> None:
    for version, expected in ((V1_36, in_1_36), (V1_37, in_1_37)):
        found = check(command(target, word, name=target), target, version=version)
        assert [each.error_class for each in found] == ([expected] if expected else [])
        if expected and in_1_36 != in_1_37 and found[0].severity is Severity.ERROR:
            assert found[0].hint is not None
            assert found[0].hint.endswith("accepts it; what is written here cannot serve both minors")


def test_command_that_forgets_its_program_is_found() -> None:
    assert told(check(command("--profiling=false"))) == [("missing-program", 5, 7)]


def test_args_of_the_main_container_are_flags() -> None:
    text = "spec: {containers: [{name: kube-apiserver, args: [--nope]}]}"
    assert told(check(text)) == [("unknown-flag", 1, 51)]


def test_other_containers_are_left_alone() -> None:
    assert check("spec: {containers: [{name: sidecar, command: [tail, --nope], args: [--nope]}]}") == []


def test_component_is_known_by_its_command_in_any_container() -> None:
    text = "spec: {containers: [{name: helper, command: [kube-scheduler, --nope]}]}"
    assert told(check(text)) == [("unknown-flag", 1, 62)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("- {op: add, path: /spec/containers/0/command/-, value: --v=2}", [], id="a flag is added"),
        pytest.param(
            "- {op: add, path: /spec/containers/0/command/-, value: --nope}", [("unknown-flag", 1, 49)], id="unknown"
        ),
        pytest.param(
            "- {op: replace, path: /spec/containers/0/command, value: [kube-apiserver, --nope]}",
            [("unknown-flag", 1, 75)],
            id="the whole command",
        ),
        pytest.param(
            "- {op: replace, path: /spec/containers/0/command, value: [--v=2]}",
            [("missing-program", 1, 59)],
            id="the whole command without its program",
        ),
        pytest.param(
            "- {op: add, path: /spec/containers/0/args, value: [--nope]}", [("unknown-flag", 1, 52)], id="the arguments"
        ),
        pytest.param("- {op: add, path: /spec/containers/1/command/-, value: --nope}", [], id="another container"),
    ],
)
def test_json_patch_of_a_command_is_checked(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert told(check(text, type_=PatchType.JSON)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("profiling: false\n--v: 2\nservice-account-issuer: [a, b]\naudit-log-path: null", [], id="fine"),
        pytest.param("v: 2\nprofilng: false", [("unknown-flag", 2, 1)], id="misspelt"),
        pytest.param("profilng: null", [("unknown-flag", 1, 1)], id="removal of a misspelt flag"),
        pytest.param("profiling: 5", [("bad-flag-value", 1, 1)], id="value of another type"),
        pytest.param("profiling: {a: b}", [("wrong-type", 1, 1)], id="a map for a value"),
        pytest.param("feature-gates: Nope=true", [("unknown-feature-gate", 1, 1)], id="a gate"),
        pytest.param("- profiling", [("bad-document", 1, 1)], id="a list for the mapping"),
    ],
)
def test_args_patch_is_checked(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert told(check(text, type_=PatchType.ARGS)) == expected


@pytest.mark.parametrize("target", ["corednsdeployment", "kubeproxydaemonset", "kubeletconfiguration"])
def test_args_patch_needs_a_static_pod(target: str) -> None:
    assert told(check("v: 2", target, PatchType.ARGS)) == [("bad-document", 1, 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("featureGates: {AllAlpha: true, AllBeta: null}", [], id="known gates"),
        pytest.param("featureGates: {AllAlfa: true}", [("unknown-feature-gate", 1, 16)], id="a misspelt gate"),
        pytest.param("featureGates: {AllAlpha: x}", [("wrong-type", 1, 16)], id="a gate that is no boolean"),
        pytest.param("featureGates: {$patch: replace, AllAlpha: true}", [], id="gates are replaced"),
    ],
)
def test_feature_gates_of_the_kubelet_are_checked(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert told(check(text, "kubeletconfiguration")) == expected


def test_values_are_not_repeated_in_messages() -> None:
    for finding in check(command("kube-apiserver", "--profiling=s3cret", "--request-timeout=s3cret")):
        assert "s3cret" not in finding.message + (finding.hint or "")
