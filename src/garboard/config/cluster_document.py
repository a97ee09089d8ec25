"""ClusterConfiguration between its document (v1beta4, and v1 with its merge methods) and the model."""

from typing import cast

from garboard.config.decoding import DecodedObject, without_empty
from garboard.documents import Json
from garboard.model.cluster import ClusterConfiguration, EncryptionAlgorithm, Networking
from garboard.model.component import (
    ApiServer,
    Arg,
    ControlPlaneComponent,
    Dns,
    EnvVar,
    ExternalEtcd,
    HostPathMount,
    LocalEtcd,
    MergeMethod,
)

_DEFAULTS = ClusterConfiguration()


def cluster_from_document(document: DecodedObject) -> ClusterConfiguration:
    """Convert and default statically; the version is still as it was written."""
    networking, gates = document.object("networking"), document.object("featureGates")
    return ClusterConfiguration(
        kubernetes_version=document.text("kubernetesVersion", _DEFAULTS.kubernetes_version),
        control_plane_endpoint=document.text("controlPlaneEndpoint"),
        cluster_name=document.text("clusterName", _DEFAULTS.cluster_name),
        certificates_dir=document.text("certificatesDir", _DEFAULTS.certificates_dir),
        image_repository=document.text("imageRepository", _DEFAULTS.image_repository),
        # Validation comes next and refuses what is no algorithm.
        encryption_algorithm=cast(
            "EncryptionAlgorithm", document.text("encryptionAlgorithm", _DEFAULTS.encryption_algorithm)
        ),
        certificate_validity_period=document.duration(
            "certificateValidityPeriod", _DEFAULTS.certificate_validity_period
        ),
        ca_certificate_validity_period=document.duration(
            "caCertificateValidityPeriod", _DEFAULTS.ca_certificate_validity_period
        ),
        feature_gates={name: gates.flag(name) for name in gates.tree},
        networking=Networking(
            service_subnet=networking.text("serviceSubnet", _DEFAULTS.networking.service_subnet),
            pod_subnet=networking.text("podSubnet"),
            dns_domain=networking.text("dnsDomain", _DEFAULTS.networking.dns_domain),
        ),
        api_server=_api_server(document.object("apiServer")),
        controller_manager=_component(document.object("controllerManager")),
        scheduler=_component(document.object("scheduler")),
        etcd=_etcd(document.object("etcd")),
        dns=_dns(document.object("dns")),
        is_proxy_disabled=document.object("proxy").flag("disabled"),
    )


def cluster_to_document(cluster: ClusterConfiguration) -> dict[str, Json]:
    """Convert back, with every default written out."""
    networking = cluster.networking
    return {
        **without_empty(
            kubernetesVersion=cluster.kubernetes_version,
            controlPlaneEndpoint=cluster.control_plane_endpoint,
            clusterName=cluster.cluster_name,
            certificatesDir=cluster.certificates_dir,
            imageRepository=cluster.image_repository,
            encryptionAlgorithm=cluster.encryption_algorithm,
            featureGates=dict(cluster.feature_gates) or None,
        ),
        "certificateValidityPeriod": str(cluster.certificate_validity_period),
        "caCertificateValidityPeriod": str(cluster.ca_certificate_validity_period),
        "networking": without_empty(
            serviceSubnet=networking.service_subnet, podSubnet=networking.pod_subnet, dnsDomain=networking.dns_domain
        ),
        "apiServer": _component_document(cluster.api_server) | without_empty(certSANs=[*cluster.api_server.cert_sans]),
        "controllerManager": _component_document(cluster.controller_manager),
        "scheduler": _component_document(cluster.scheduler),
        "etcd": _etcd_document(cluster.etcd),
        "dns": without_empty(
            imageRepository=cluster.dns.image_repository, imageTag=cluster.dns.image_tag, disabled=cluster.dns.disabled
        ),
        "proxy": without_empty(disabled=cluster.is_proxy_disabled),
    }


def args_from(entries: tuple[DecodedObject, ...]) -> tuple[Arg, ...]:
    return tuple(
        Arg(entry.text("name"), entry.text("value"), cast("MergeMethod", entry.text("mergeMethod")))
        for entry in entries
    )


def args_document(args: tuple[Arg, ...]) -> list[Json]:
    """Convert arguments back; the merge method is lost in printing where the written API version has none (v1beta4)."""
    merged = ({"mergeMethod": arg.merge_method} if arg.merge_method else {} for arg in args)
    return [{"name": arg.name, "value": arg.value, **method} for arg, method in zip(args, merged, strict=True)]


def _component(document: DecodedObject) -> ControlPlaneComponent:
    return ControlPlaneComponent(
        extra_args=args_from(document.objects("extraArgs")),
        extra_volumes=_volumes(document),
        extra_envs=_envs(document),
    )


def _api_server(document: DecodedObject) -> ApiServer:
    return ApiServer(
        extra_args=args_from(document.objects("extraArgs")),
        extra_volumes=_volumes(document),
        extra_envs=_envs(document),
        cert_sans=document.texts("certSANs"),
    )


def _component_document(component: ControlPlaneComponent) -> dict[str, Json]:
    return without_empty(
        extraArgs=args_document(component.extra_args),
        extraVolumes=[_volume_document(volume) for volume in component.extra_volumes],
        extraEnvs=[_env_document(env) for env in component.extra_envs],
    )


def _volumes(document: DecodedObject) -> tuple[HostPathMount, ...]:
    return tuple(
        HostPathMount(
            name=volume.text("name"),
            host_path=volume.text("hostPath"),
            mount_path=volume.text("mountPath"),
            read_only=volume.flag("readOnly"),
            path_type=volume.text("pathType"),
        )
        for volume in document.objects("extraVolumes")
    )


def _volume_document(volume: HostPathMount) -> dict[str, Json]:
    return without_empty(
        name=volume.name,
        hostPath=volume.host_path,
        mountPath=volume.mount_path,
        readOnly=volume.read_only,
        pathType=volume.path_type,
    )


def _envs(document: DecodedObject) -> tuple[EnvVar, ...]:
    return tuple(EnvVar(env.text("name"), env.text("value"), _env_source(env)) for env in document.objects("extraEnvs"))


def _env_source(env: DecodedObject) -> Json:
    if "valueFrom" not in env:
        return None
    source = dict(env.object("valueFrom").tree)
    if "fieldRef" in source:
        source["fieldRef"] = {"apiVersion": "v1", **env.object("valueFrom").object("fieldRef").tree}
    return source


def _env_document(env: EnvVar) -> dict[str, Json]:
    return without_empty(name=env.name, value=env.value, valueFrom=env.value_from)


def _etcd(document: DecodedObject) -> LocalEtcd | ExternalEtcd:
    if "external" in document:
        return _external_etcd(document.object("external"))
    local = document.object("local")
    return LocalEtcd(
        image_repository=local.text("imageRepository"),
        image_tag=local.text("imageTag"),
        data_dir=local.text("dataDir", LocalEtcd().data_dir),
        extra_args=args_from(local.objects("extraArgs")),
        extra_envs=_envs(local),
        server_cert_sans=local.texts("serverCertSANs"),
        peer_cert_sans=local.texts("peerCertSANs"),
    )


def _external_etcd(external: DecodedObject) -> ExternalEtcd:
    endpoints = external.texts("endpoints")
    return ExternalEtcd(
        endpoints=endpoints,
        http_endpoints=external.texts("httpEndpoints") or endpoints,
        ca_file=external.text("caFile"),
        cert_file=external.text("certFile"),
        key_file=external.text("keyFile"),
    )


def _etcd_document(etcd: LocalEtcd | ExternalEtcd) -> dict[str, Json]:
    if isinstance(etcd, ExternalEtcd):
        external = without_empty(
            endpoints=[*etcd.endpoints],
            httpEndpoints=[*etcd.http_endpoints],
            caFile=etcd.ca_file,
            certFile=etcd.cert_file,
            keyFile=etcd.key_file,
        )
        return {"external": external}
    local = without_empty(
        imageRepository=etcd.image_repository,
        imageTag=etcd.image_tag,
        dataDir=etcd.data_dir,
        extraArgs=args_document(etcd.extra_args),
        extraEnvs=[_env_document(env) for env in etcd.extra_envs],
        serverCertSANs=[*etcd.server_cert_sans],
        peerCertSANs=[*etcd.peer_cert_sans],
    )
    return {"local": local}


def _dns(document: DecodedObject) -> Dns:
    return Dns(
        image_repository=document.text("imageRepository"),
        image_tag=document.text("imageTag"),
        disabled=document.flag("disabled"),
    )
