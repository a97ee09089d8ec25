"""What is hidden in texts and documents, and what is left for the reader."""

import json

import pytest

from garboard.documents import Json
from garboard.node.masking import masked, masked_document, masked_text

TOKEN = "abcdef.0123456789abcdef"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvq\n-----END RSA PRIVATE KEY-----"
HEX = "00ff" * 16


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a {KEY} b", "a <hidden> b"),
        ("-----BEGIN EC PRIVATE KEY-----\ncut off", "<hidden>"),
        (json.dumps(KEY), '"<hidden>"'),
        (f"--token {TOKEN} \\", "--token <hidden> \\"),
        (f"--token={TOKEN}", "--token=<hidden>"),
        (f"--certificate-key {HEX} \\", "--certificate-key <hidden> \\"),
        (f"--certificate-key={HEX}", "--certificate-key=<hidden>"),
        (f"certificateKey: {HEX}", "certificateKey: <hidden>"),
        (f'{{"certificateKey": "{HEX}", "a": 1}}', '{"certificateKey": "<hidden>", "a": 1}'),
        (f'{{"certificateKey":"{HEX}"}}', '{"certificateKey":"<hidden>"}'),
        (json.dumps(json.dumps({"certificateKey": HEX, "a": 1})), r'"{\"certificateKey\": \"<hidden>\", \"a\": 1}"'),
        (f'["--certificate-key", "{HEX}"]', '["--certificate-key", "<hidden>"]'),
        (f'["--certificate-key={HEX}"]', '["--certificate-key=<hidden>"]'),
        ("client-key-data: LS0t\nserver: x", "client-key-data: <hidden>\nserver: x"),
        ('{"client-key-data": "LS0t"}', '{"client-key-data": "<hidden>"}'),
        ("tls.key: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t==", "tls.key: <hidden>"),
        ("blob LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t== end", "blob <hidden> end"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer <hidden>"),
        ('"Authorization": "Bearer abc def"', '"Authorization": "<hidden>"'),
        ("curl -H 'Authorization: Basic dTpw'", "curl -H 'Authorization: Basic <hidden>'"),
        ("eyJhbGciOiJS.eyJpc3MiOiJr.c2lnbmF0dXJl", "<hidden>"),
        ('password: "two words" # x', 'password: "<hidden>" # x'),
        (r'{"password": "a\"b", "c": 1}', '{"password": "<hidden>", "c": 1}'),
        ("DB_PASSWORD=hunter2 other=1", "DB_PASSWORD=<hidden> other=1"),
        ("http://user:hunter2@proxy:3128", "http://<hidden>@proxy:3128"),
        ("http://user:hunt/er2@proxy:3128/x", "http://<hidden>@proxy:3128/x"),
        ("redis://:hunt@er/2@db", "redis://<hidden>@db"),
        ("https://a:1,https://u:hunter2@b:2/c", "https://a:1,https://<hidden>@b:2/c"),
        ("DB_PASS=hunter2", "DB_PASS=<hidden>"),
        ("--etcd-pass=hunter2 --x", "--etcd-pass=<hidden> --x"),
        ("--etcd-pass hunter2", "--etcd-pass <hidden>"),
        ("AWS_SECRET_ACCESS_KEY=hunter2", "AWS_SECRET_ACCESS_KEY=<hidden>"),
        ("server=db;pwd=hunter2", "server=db;pwd=<hidden>"),
        ('{"value":"hunter2","name":"A"}', '{"value":"<hidden>","name":"A"}'),
        (r'{\"value\": \"hunter2\", \"name\": \"A\"}', r'{\"value\": \"<hidden>\", \"name\": \"A\"}'),
        ("[{Name:A Value:hunter2} x ValueFrom:nil} {Name:B Value:two words}]",
         "[{Name:A Value:<hidden> ValueFrom:nil} {Name:B Value:<hidden>}]"),
        (
            "&Container{Env:[]EnvVar{EnvVar{Name:A,Value:hunter2, x,ValueFrom:nil,},},Port:1}",
            "&Container{Env:[]EnvVar{EnvVar{Name:A,Value:<hidden>,ValueFrom:nil,},},Port:1}",
        ),
        ('{"Env":["DB=hunter2", "PATH=/bin"],"Cmd":["a=b"]}', '{"Env":["DB=<hidden>", "PATH=<hidden>"],"Cmd":["a=b"]}'),
        (r'{\"env\":[\"DB=a ] b\",\"C=d\"]}', r'{\"env\":[\"DB=<hidden>\",\"C=<hidden>\"]}'),
        ("Env:[DB=hunter2 C=d] Cmd:[x=y]", "Env:[DB=<hidden> C=<hidden>] Cmd:[x=y]"),
        ('{"key":"DB","value":"hunter2"}', '{"key":"DB","value":"<hidden>"}'),
        ('envs:{key:"DB" value:"hunter 2"} envs:{key:"B" value:"x"}',
         'envs:{key:"DB" value:"<hidden>"} envs:{key:"B" value:"<hidden>"}'),
        ("env: [{name: DB, value: hunter 2}, {name: B, value: x}]",
         "env: [{name: DB, value: <hidden>}, {name: B, value: <hidden>}]"),
        ("env:\n- name: DB\n  value: hunter 2\n- name: B", "env:\n- name: DB\n  value: <hidden>\n- name: B"),
        ('{"auths":{"r.test":{"auth":"dTpw","email":"a"}}}', '{"auths":{"r.test":{"auth":"<hidden>","email":"a"}}}'),
        (r'{\"env\":[{\"name\":\"A\",\"value\":\"hunter2\"}]}', r'{\"env\":[{\"name\":\"A\",\"value\":\"<hidden>\"}]}'),
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_hidden(text: str, left: str) -> None:
    assert masked(text) == left
    assert masked(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "kube-apiserver v1.37.1 at 10.89.0.11:6443",
        "sha256:" + "ab" * 32,
        "--discovery-token-ca-cert-hash sha256:" + "ab" * 32,
        "--token-auth-file=/etc/tokens --service-account-key-file=/etc/kubernetes/pki/sa.pub",
        "--kubelet-client-key=/etc/kubernetes/pki/apiserver-kubelet-client.key",
        "bypass: x, compass=north, pass through",
        "docker://registry:5000/pause@sha256:" + "ab" * 32,
        "AWS_ACCESS_KEY_ID=AKIA --etcd-keyfile=/etc/ssl/key --api-key-file=/x",
        "the bearer token is not valid; basic authentication is off",
        "automountServiceAccountToken: false",
        "serviceAccountToken:\n  path: token",
        '{"serviceAccountToken": {"path": "x"}, "secret": {"secretName": "y"}, "imagePullSecrets": []}',
        "the cluster does not know the token with the id 'abcdef'",
    ],
)
def test_what_only_speaks_of_secrets_is_left(text: str) -> None:
    assert masked(text) == text


def test_values_of_variables_and_headers_are_hidden_wherever_they_are() -> None:
    pod: Json = {"spec": {"containers": [{
        "name": "a",
        "env": [{"name": "A", "value": "hunter2"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "X-Key", "value": "hunter2"}]}},
    }]}}  # fmt: skip
    left = json.dumps(masked_document(pod))
    assert "hunter2" not in left
    assert '"name": "A", "value": "<hidden>"' in left
    assert '"fieldPath": "x"' in left


def test_annotations_of_others_are_hidden_and_those_of_kubeadm_and_the_kubelet_are_not() -> None:
    own = {"kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint": "192.0.2.10:6443"}
    others = {"kubectl.kubernetes.io/last-applied-configuration": '{"env": "hunter2"}', "mine": "hunter2"}
    left = masked_document({"metadata": {"annotations": {**own, **others}}})
    assert left == {"metadata": {"annotations": {**own, **dict.fromkeys(others, "<hidden>")}}}


def test_documents_in_the_texts_of_documents_are_masked_too() -> None:
    block = "    value: |\n      two\n      lines\n"
    text = f"apiServer:\n  extraEnvs:\n  - name: A\n    value: hunter2\n  - name: B\n{block}"
    left = masked_document({"data": {"ClusterConfiguration": text}})
    assert left == {"data": {"ClusterConfiguration": (
        "apiServer:\n  extraEnvs:\n  - name: A\n    value: <hidden>\n  - name: B\n    value: <hidden>\n"
    )}}  # fmt: skip


def test_document_that_cannot_be_read_is_hidden_whole() -> None:
    left = masked_text("env:\n- name: A\n   value: hunter2\n")
    assert "hunter2" not in left
    assert left.startswith("<hidden>: it is no document")


def test_text_that_is_no_document_stays() -> None:
    hosts = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n"
    assert masked_text(hosts) == hosts
    arguments = 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.10 --pod-infra-container-image=x"\n'
    assert masked_text(arguments) == arguments


_VARIABLE: Json = [{"name": "A", "value": "planted"}]


@pytest.mark.parametrize(
    ("path", "value", "left"),
    [
        ("/spec/containers/0/env", _VARIABLE, [{"name": "A", "value": "<hidden>"}]),
        ("/spec/containers/0/env/-", {"name": "A", "value": "planted"}, {"name": "A", "value": "<hidden>"}),
        ("/spec/containers/0/env/0/value", "planted", "<hidden>"),
        ("/spec/containers/0/env/0/name", "A", "A"),
        ("/spec/containers/0", {"env": _VARIABLE}, {"env": [{"name": "A", "value": "<hidden>"}]}),
        ("/spec/containers/0/livenessProbe/httpGet/httpHeaders", _VARIABLE, [{"name": "A", "value": "<hidden>"}]),
        ("/metadata/annotations", {"x": "planted"}, {"x": "<hidden>"}),
        ("/metadata/annotations/x", "planted", "<hidden>"),
        ("/metadata/annotations/kubeadm.kubernetes.io~1x", "kept", "kept"),
        ("/data/password", "planted", "<hidden>"),
        ("/spec/priority", 3, 3),
        ("", {"a": "b"}, {"a": "b"}),
    ],
)  # fmt: skip
def test_value_of_a_json_patch_is_hidden_as_that_of_its_place(path: str, value: Json, left: Json) -> None:
    assert masked_document([{"op": "add", "path": path, "value": value}]) == [
        {"op": "add", "path": path, "value": left}
    ]
