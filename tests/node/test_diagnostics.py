"""The bundle of a failed run: what is in it, and what never is."""

import base64
import json

from garboard.documents import Json, write_yaml
from garboard.engine import Note, Plan, PutObject, Step, WriteFile
from garboard.errors import GarboardError
from garboard.node.diagnostics import bundle
from garboard.phases.gates import ObservedContainer
from tests.support.phases.gates.views import MemoryNodeView

TOKEN = "abcdef.0123456789abcdef"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvq\n-----END RSA PRIVATE KEY-----"


class FewFiles:
    def paths_below(self, path: str) -> tuple[str, ...]:
        return (f"{path}/admin.conf",)

    def owner(self, path: str) -> tuple[int, int, int] | None:
        return 0, 0, 0o600


def collected(view: MemoryNodeView) -> dict[str, str]:
    secret = WriteFile(
        path="/etc/kubernetes/bootstrap-kubelet.conf", content=TOKEN.encode(), mode=0o600, is_secret=True
    )
    plan = Plan((Step(secret, "x", "kubelet-start"),), (Note(f"token {TOKEN}"),))
    error = GarboardError(f"no answer for {TOKEN}", hint="look")
    return dict(bundle(error, plan, view, FewFiles(), ("kernel: 6.1",)))


def view() -> MemoryNodeView:
    log = "/var/log/pods/x/0.log"
    return MemoryNodeView(
        files={
            "/etc/kubernetes/manifests/etcd.yaml": b"kind: Pod\n",
            "/etc/kubernetes/admin.conf": KEY.encode(),
            log: f"2026-11-15T12:00:00Z stderr F started with {TOKEN}\n".encode(),
        },
        running=[
            ObservedContainer(
                id="0123456789", name="etcd", pod="etcd-cp1", namespace="kube-system", is_running=False, log_path=log
            )
        ],
        log=["kubelet says hello"],
        objects={"Node/cp1": {"metadata": {"name": "cp1", "managedFields": []}}},
    )


def test_bundle_has_what_a_person_would_ask_for() -> None:
    found = collected(view())
    assert "hint: look" in found["error.txt"]
    assert '"phase": "kubelet-start"' in found["plan.json"]
    assert found["files.txt"].splitlines()[-1] == "0600 0:0 /etc/kubernetes/admin.conf"
    assert found["files/etc-kubernetes-manifests-etcd.yaml"] == "kind: Pod\n"
    assert found["kubelet.log"] == "kubelet says hello\n"
    assert "started with" in found["containers/etcd-0-01234567.log"]
    assert '"cp1"' in found["nodes.json"]
    assert "managedFields" not in found["nodes.json"]


def test_no_secret_is_in_any_file() -> None:
    text = "".join(collected(view()).values())
    assert TOKEN not in text
    assert "PRIVATE KEY" not in text
    assert "MIIEvq" not in text


def test_what_does_not_answer_is_told_in_its_place() -> None:
    assert "does not answer" in collected(MemoryNodeView(running=None))["containers.json"]


PLANTED = {
    "environment": "env-Hunter2-value",
    "annotation": "annotation-Hunter2-value",
    "header": "header-Hunter2-value",
    "certificate key": "5ec2e7" + "a1" * 29,
    "token": TOKEN,
    "key": "MIIEvq",
    "bearer": "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl",
    "password": "pass-Hunter2-word",
    "slashes": "slash/Hunter2/word",
}
OTHERS = "business-of-another-namespace"
KEY_DATA = base64.b64encode(KEY.encode()).decode()


def planted_pod(name: str, namespace: str) -> dict[str, Json]:
    """A pod with a secret in every place where a Pod may have one."""
    env: list[Json] = [{"name": "A", "value": PLANTED["environment"]}]
    script = f"curl -H 'Authorization: Bearer {PLANTED['bearer']}' --password {PLANTED['password']}"
    container: dict[str, Json] = {
        "name": name,
        "args": [f"--certificate-key={PLANTED['certificate key']}", "--token", PLANTED["token"]],
        "command": ["sh", "-c", script],
        "env": env,
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "X", "value": PLANTED["header"]}]}},
    }
    annotations: dict[str, Json] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": {"containers": [{"env": env}]}}),
        "mine": PLANTED["annotation"],
    }
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"containers": [container], "initContainers": [container]},
    }


def planted_lines() -> list[str]:
    """Lines of logs, with secrets in the forms in which programs write them."""
    variables = f"EnvVar{{Name:A,Value:{PLANTED['environment']},ValueFrom:nil,}}"
    return [
        f"join --certificate-key={PLANTED['certificate key']}",
        json.dumps({"certificateKey": PLANTED["certificate key"], "token": PLANTED["password"]}),
        json.dumps({"message": json.dumps({"env": [{"name": "A", "value": PLANTED["environment"]}]})}),
        f"client-key-data: {KEY_DATA}",
        f'err="container &Container{{Env:[]EnvVar{{{variables},}},}} start failed"',
        json.dumps({"key": KEY}),
        f"http://user:{PLANTED['password']}@proxy:3128",
        f"http://user:{PLANTED['slashes']}@proxy:3128",
        json.dumps({"value": PLANTED["environment"], "name": "A"}),
        f"DB_PASS={PLANTED['password']} AWS_SECRET_ACCESS_KEY={PLANTED['password']} pwd={PLANTED['password']}",
        f"etcd --etcd-pass={PLANTED['password']}",
        f"[{{Name:FOO Value:{PLANTED['environment']} ValueFrom:<nil>}} {{Name:X Value:{PLANTED['header']}}}]",
        json.dumps({"Env": [f"A={PLANTED['environment']}"]}),
        json.dumps({"key": "A", "value": PLANTED["environment"]}),
        f'envs:{{key:"A" value:"{PLANTED["environment"]}"}}',
        f"env: [{{name: A, value: {PLANTED['environment']}}}]",
        json.dumps({"auths": {"registry.test": {"auth": PLANTED["password"]}}}),
    ]


HEAD = "Nov 18 09:30:00 cp1 kubelet[12]: E1118 09:30:00.000000      12 pod_workers.go:1324]"


def lines_of_others() -> list[str]:
    """Lines of a kubelet's log about the pods of another namespace, in the forms in which it writes them."""
    pod = OTHERS
    return [
        f'{HEAD} "Error syncing pod, skipping" err="x" pod="default/{pod}" podUID="1234"',
        f'{HEAD} "SyncLoop ADD" source="api" pods=["default/{pod}"]',
        f'{HEAD} "Unhandled Error" err="container &Container{{Name:{pod}}} failed in pod {pod}_default(1234abcd-1)"',
        f"\tlast line of it: {OTHERS}",
        f'{HEAD} "MountVolume.SetUp failed for volume" pod "{pod}" (UID: "1234")',
        f'{HEAD} object-"default"/"{OTHERS}": failed to list *v1.Secret',
        f'{HEAD} "PullImage from image service failed" image="registry.test/{OTHERS}:1"',
        f'{{"ts":1,"msg":"x","pod":{{"name":"{pod}","namespace":"default"}}}}',
        f'{HEAD} "orphaned" path="/var/lib/kubelet/pods/{OTHERS}/volumes"',
    ]


OWN_LINES = [
    f'{HEAD} "Error syncing pod, skipping" err="why" pod="kube-system/etcd-cp1" podUID="1"',
    "  and why it did",
    f'{HEAD} "SyncLoop ADD" source="file" pods=["kube-system/etcd-cp1"]',
    f'{HEAD} "Unable to register node with API server" node="cp1"',
]


def test_log_of_the_kubelet_is_about_itself_and_kube_system() -> None:
    found = collected(MemoryNodeView(log=[*lines_of_others(), *OWN_LINES]))["kubelet.log"]
    assert found.splitlines() == ["(9 lines about pods of other namespaces are left out)", *OWN_LINES]


def planted_container(name: str, namespace: str, text: str) -> ObservedContainer:
    return ObservedContainer(
        id=f"{name:0<10}",
        name=name,
        pod=name,
        namespace=namespace,
        is_running=False,
        log_path=f"/var/log/{name}",
        message=f"{text} --token {PLANTED['token']}",
    )


def planted_view() -> MemoryNodeView:
    pod, lines = planted_pod("own", "kube-system"), planted_lines()
    manifests = "/etc/kubernetes/manifests"
    return MemoryNodeView(
        files={
            f"{manifests}/etcd.yaml": write_yaml(pod).encode(),
            f"{manifests}/kube-apiserver.yaml": f"env:\n- name: A\n   value: {PLANTED['environment']}\n".encode(),
            "/var/lib/kubelet/kubeadm-flags.env": f'ARGS="--bootstrap-token={PLANTED["token"]}"\n'.encode(),
            "/var/log/own": "".join(f"2026-11-15T12:00:00Z stderr F {line}\n" for line in lines).encode(),
            "/var/log/other": f"2026-11-15T12:00:00Z stderr F {OTHERS}\n".encode(),
        },
        running=[planted_container("own", "kube-system", ""), planted_container("other", "default", OTHERS)],
        log=[*lines, *lines_of_others()],
        objects={"Pod/own": pod, "Pod/other": planted_pod(OTHERS, "default")},
    )


def planted_plan() -> Plan:
    variables: list[Json] = [{"name": "A", "value": PLANTED["environment"]}]
    content: dict[str, Json] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "kube-system"},
        "data": {"ClusterConfiguration": write_yaml({"apiServer": {"extraEnvs": variables}})},
    }
    manifest = write_yaml(planted_pod("own", "kube-system")).encode()
    written = WriteFile(path="/etc/kubernetes/manifests/etcd.yaml", content=manifest, mode=0o600)
    note = Note(f"join with --certificate-key={PLANTED['certificate key']}")
    return Plan((Step(written, "x", "etcd"), Step(PutObject.of(content), "x", "upload-config")), (note,))


def test_none_of_the_planted_secrets_is_in_the_bundle_and_nothing_of_other_namespaces() -> None:
    error = GarboardError(f"failed: {json.dumps({'certificateKey': PLANTED['certificate key']})}", hint=TOKEN)
    found = dict(bundle(error, planted_plan(), planted_view(), FewFiles(), (f"PASSWORD={PLANTED['password']}",)))
    planted = {**PLANTED, "another namespace": OTHERS, "key in base64": KEY_DATA}
    leaks = [(file, kind) for file, text in found.items() for kind, secret in planted.items() if secret in text]
    assert leaks == []


def test_masked_documents_can_still_be_read_and_say_what_is_there() -> None:
    found = dict(bundle(GarboardError("x"), planted_plan(), planted_view(), FewFiles()))
    pods = json.loads(found["pods.json"])
    assert [pod["metadata"]["name"] for pod in pods] == ["own"]
    assert pods[0]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "<hidden>"}]
    assert json.loads(found["containers.json"])[0]["name"] == "own"
    assert json.loads(found["plan.json"])["steps"]
    assert "name: A" in found["files/etc-kubernetes-manifests-etcd.yaml"]
    assert found["files/etc-kubernetes-manifests-kube-apiserver.yaml"].startswith("<hidden>: it is no document")
