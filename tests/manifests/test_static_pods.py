from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import read_yaml
from garboard.manifests import ConfigField, ControlPlaneNode, ValueSource
from garboard.manifests.pod import StaticPod
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod, static_pod_file
from garboard.model import DEFAULT_VERSION
from garboard.model.cluster import ClusterConfiguration, Networking
from garboard.model.component import ApiServer, Arg, ControlPlaneComponent, EnvVar, HostPathMount, LocalEtcd
from garboard.model.duration import Duration
from garboard.model.node import ApiEndpoint
from garboard.schema import load_schema, round_trip
from tests.support.manifests.nodes import HOST, node

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Cn"]), max_size=6)
COMPONENTS = st.builds(
    ControlPlaneComponent,
    extra_args=st.lists(st.builds(Arg, TEXTS, TEXTS), max_size=3).map(tuple),
    extra_volumes=st.lists(st.builds(HostPathMount, TEXTS, TEXTS, TEXTS, st.booleans(), TEXTS), max_size=3).map(tuple),
    extra_envs=st.lists(st.builds(EnvVar, TEXTS, TEXTS), max_size=3).map(tuple),
)


def command(pod: StaticPod) -> list[str]:
    return pod.document["spec"]["containers"][0]["command"]  # type: ignore[index,call-overload,return-value]


def flag_source(pod: StaticPod, flag: str) -> ValueSource | None:
    """Return what decides a flag; of one that stands there several times the last counts."""
    places = [index for index, word in enumerate(command(pod)) if word.startswith(f"{flag}=")]
    return pod.sources.of(("spec", "containers", 0, "command", places[-1])) if places else None


def test_a_joining_member_names_the_members_that_are_there() -> None:
    members = "a=https://192.0.2.1:2380,node-1=https://192.0.2.10:2380"
    found = command(etcd_pod(node(), members))
    assert f"--initial-cluster={members}" in found
    assert "--initial-cluster-state=existing" in found
    assert not any("initial-cluster-state" in each for each in command(etcd_pod(node())))


def test_the_api_server_asks_etcd_where_the_user_has_it_advertise() -> None:
    etcd = LocalEtcd(extra_args=(Arg("advertise-client-urls", ",https://b:1", "append"),))
    pod = control_plane_pod("kube-apiserver", node(ClusterConfiguration(etcd=etcd)))
    assert "--etcd-servers=https://127.0.0.1:2379,https://b:1" in command(pod)
    assert str(flag_source(pod, "--etcd-servers")) == "etcd.local.extraArgs[0]"


@pytest.mark.parametrize(
    ("component", "flag", "source"),
    [
        ("kube-apiserver", "--profiling", "apiServer.extraArgs[1]"),
        ("kube-apiserver", "--allow-privileged", "None"),
        ("kube-apiserver", "--service-cluster-ip-range", "networking.serviceSubnet"),
        ("kube-apiserver", "--advertise-address", "localAPIEndpoint.advertiseAddress"),
        ("kube-apiserver", "--nonsense", "None"),
        ("kube-controller-manager", "--cluster-cidr", "networking.podSubnet"),
        ("kube-controller-manager", "--cluster-signing-key-file", "certificatesDir"),
        ("kube-scheduler", "--leader-elect", "None"),
    ],
)
def test_a_flag_tells_what_decides_it(component: str, flag: str, source: str) -> None:
    cluster = ClusterConfiguration(
        networking=Networking(pod_subnet="10.244.0.0/16"),
        api_server=ApiServer(extra_args=(Arg("profiling", "true"), Arg("profiling", "false"))),
    )
    assert str(flag_source(control_plane_pod(component, node(cluster)), flag)) == source


def test_every_part_of_a_manifest_tells_what_decides_it() -> None:
    cluster = ClusterConfiguration(
        scheduler=ControlPlaneComponent(
            extra_args=(Arg("bind-address", "192.0.2.7"),),
            extra_volumes=(HostPathMount("a", "/a", "/b"),),
            extra_envs=(EnvVar("Z", "1"), EnvVar("HTTP_PROXY", "mine")),
        )
    )
    host = replace(HOST, environment={"HTTP_PROXY": "theirs", "https_proxy": "x"})
    sources = control_plane_pod("kube-scheduler", node(cluster, host=host)).sources
    container = ("spec", "containers", 0)
    found = {
        "env[0]": sources.of((*container, "env", 0, "value")),
        "env[1]": sources.of((*container, "env", 1, "value")),
        "env[2]": sources.of((*container, "env", 2, "name")),
        "volume": sources.of(("spec", "volumes", 0, "hostPath", "path")),
        "mount": sources.of((*container, "volumeMounts", 0, "mountPath")),
        "own mount": sources.of((*container, "volumeMounts", 1, "mountPath")),
        "probe": sources.of((*container, "livenessProbe", "httpGet", "host")),
        "patience": sources.of((*container, "startupProbe", "failureThreshold")),
        "image": sources.of((*container, "image")),
        "priority": sources.of(("spec", "priority")),
    }
    assert {name: str(source) for name, source in found.items()} == {
        "env[0]": "scheduler.extraEnvs[1]",
        "env[1]": "scheduler.extraEnvs[0]",
        "env[2]": "environment variable https_proxy",
        "volume": "scheduler.extraVolumes[0]",
        "mount": "scheduler.extraVolumes[0]",
        "own mount": "None",
        "probe": "scheduler.extraArgs[0]",
        "patience": "timeouts.controlPlaneComponentHealthCheck",
        "image": "kubernetesVersion",
        "priority": "None",
    }


def test_a_joining_node_is_described_by_its_own_document() -> None:
    joined = ControlPlaneNode(
        cluster=ClusterConfiguration(),
        name="node-2",
        endpoint=ApiEndpoint(advertise_address="fd00::2", bind_port=7443),
        host=HOST,
        kind="JoinConfiguration",
    )
    pod = control_plane_pod("kube-apiserver", joined)
    assert "--secure-port=7443" in command(pod)
    field = ("controlPlane", "localAPIEndpoint", "bindPort")
    assert flag_source(pod, "--secure-port") == ConfigField("JoinConfiguration", field)
    assert "--listen-metrics-urls=http://[::1]:2381" in command(etcd_pod(joined))


def test_patches_have_the_last_word_and_the_file_is_private() -> None:
    file = static_pod_file(etcd_pod(node()), lambda target, _: {"patched": target})
    assert (file.path, file.mode) == ("/etc/kubernetes/manifests/etcd.yaml", 0o600)
    assert file.content == b"patched: etcd\n"


@pytest.mark.parametrize(("timeout", "failures"), [(240, 24), (241, 25), (0, None)])
def test_a_component_may_take_as_long_to_start_as_one_waits_for_it(timeout: int, failures: int | None) -> None:
    patient = replace(node(), health_check_timeout=Duration.of(seconds=timeout))
    document = read_yaml(static_pod_file(etcd_pod(patient)).content, source="etcd.yaml")
    probe = document["spec"]["containers"][0]["startupProbe"]  # type: ignore[index,call-overload]
    assert probe.get("failureThreshold") == failures  # type: ignore[union-attr]


@settings(max_examples=30, deadline=None)
@given(COMPONENTS, st.sampled_from(list(CONTROL_PLANE)))
def test_a_manifest_is_what_go_writes_of_a_pod(component: ControlPlaneComponent, name: str) -> None:
    server = ApiServer(
        extra_args=component.extra_args, extra_volumes=component.extra_volumes, extra_envs=component.extra_envs
    )
    cluster = ClusterConfiguration(api_server=server, controller_manager=component, scheduler=component)
    text = static_pod_file(control_plane_pod(name, node(cluster))).content
    document = read_yaml(text, source=name)
    shape = load_schema(DEFAULT_VERSION).type_of("v1", "Pod")
    assert shape is not None
    again = read_yaml(text, source=name)
    round_trip(again, shape)
    assert again == document
