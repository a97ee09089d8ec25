"""InitConfiguration, JoinConfiguration and ResetConfiguration between their documents and the model."""

import re
from typing import cast

from garboard.config.cluster_document import args_document, args_from
from garboard.config.decoding import DecodedObject, without_empty
from garboard.documents import Json
from garboard.model.cluster import ClusterConfiguration
from garboard.model.lifecycle import (
    DEFAULT_CA_CERT_PATH,
    DEFAULT_TOKEN_GROUPS,
    DEFAULT_TOKEN_TTL,
    DEFAULT_TOKEN_USAGES,
    BootstrapToken,
    FileDiscovery,
    InitConfiguration,
    JoinConfiguration,
    JoinControlPlane,
    ResetConfiguration,
    TokenDiscovery,
)
from garboard.model.node import (
    DEFAULT_BIND_PORT,
    DEFAULT_IMAGE_PULL_POLICY,
    ApiEndpoint,
    ImagePullPolicy,
    NodeRegistration,
    Taint,
    Timeouts,
)


def init_from_document(document: DecodedObject, cluster: ClusterConfiguration) -> InitConfiguration:
    return InitConfiguration(
        cluster=cluster,
        bootstrap_tokens=tuple(_token(token) for token in document.objects("bootstrapTokens")) or (BootstrapToken(),),
        dry_run=document.flag("dryRun"),
        node_registration=_registration(document.object("nodeRegistration")),
        local_api_endpoint=_endpoint(document.object("localAPIEndpoint")),
        certificate_key=document.text("certificateKey"),
        skip_phases=document.texts("skipPhases"),
        patches_directory=patches_from(document),
        timeouts=timeouts_from(document),
    )


def init_to_document(init: InitConfiguration) -> dict[str, Json]:
    return {
        **without_empty(
            bootstrapTokens=[_token_document(token) for token in init.bootstrap_tokens],
            dryRun=init.dry_run,
            certificateKey=init.certificate_key,
            skipPhases=[*init.skip_phases],
        ),
        "nodeRegistration": _registration_document(init.node_registration),
        "localAPIEndpoint": _endpoint_document(init.local_api_endpoint),
        **patches_document(init.patches_directory),
        "timeouts": timeouts_document(init.timeouts),
    }


def join_from_document(document: DecodedObject) -> JoinConfiguration:
    discovery = document.object("discovery")
    control_plane = document.object("controlPlane")
    joins_control_plane = JoinControlPlane(
        local_api_endpoint=_endpoint(control_plane.object("localAPIEndpoint")),
        certificate_key=control_plane.text("certificateKey"),
    )
    default_token = discovery.object("bootstrapToken").text("token")
    return JoinConfiguration(
        discovery=_discovery(discovery),
        tls_bootstrap_token=discovery.text("tlsBootstrapToken", default_token),
        dry_run=document.flag("dryRun"),
        node_registration=_registration(document.object("nodeRegistration")),
        ca_cert_path=document.text("caCertPath", DEFAULT_CA_CERT_PATH),
        control_plane=joins_control_plane if "controlPlane" in document else None,
        skip_phases=document.texts("skipPhases"),
        patches_directory=patches_from(document),
        timeouts=timeouts_from(document),
    )


def join_to_document(join: JoinConfiguration) -> dict[str, Json]:
    document: dict[str, Json] = {
        **without_empty(dryRun=join.dry_run, caCertPath=join.ca_cert_path, skipPhases=[*join.skip_phases]),
        "discovery": _discovery_document(join),
        "nodeRegistration": _registration_document(join.node_registration),
        **patches_document(join.patches_directory),
        "timeouts": timeouts_document(join.timeouts),
    }
    if join.control_plane is not None:
        document["controlPlane"] = {
            "localAPIEndpoint": _endpoint_document(join.control_plane.local_api_endpoint),
            **without_empty(certificateKey=join.control_plane.certificate_key),
        }
    return document


def reset_from_document(document: DecodedObject) -> ResetConfiguration:
    return ResetConfiguration(
        certificates_dir=document.text("certificatesDir", ResetConfiguration().certificates_dir),
        cleanup_tmp_dir=document.flag("cleanupTmpDir"),
        cri_socket=document.text("criSocket"),
        dry_run=document.flag("dryRun"),
        force=document.flag("force"),
        ignore_preflight_errors=document.texts("ignorePreflightErrors"),
        skip_phases=document.texts("skipPhases"),
        unmount_flags=document.texts("unmountFlags"),
        timeouts=timeouts_from(document),
    )


def reset_to_document(reset: ResetConfiguration) -> dict[str, Json]:
    return {
        **without_empty(
            certificatesDir=reset.certificates_dir,
            cleanupTmpDir=reset.cleanup_tmp_dir,
            criSocket=reset.cri_socket,
            dryRun=reset.dry_run,
            force=reset.force,
            ignorePreflightErrors=[*reset.ignore_preflight_errors],
            skipPhases=[*reset.skip_phases],
            unmountFlags=[*reset.unmount_flags],
        ),
        "timeouts": timeouts_document(reset.timeouts),
    }


_TIMEOUTS = {
    "controlPlaneComponentHealthCheck": "control_plane_component_health_check",
    "kubeletHealthCheck": "kubelet_health_check",
    "kubernetesAPICall": "kubernetes_api_call",
    "etcdAPICall": "etcd_api_call",
    "tlsBootstrap": "tls_bootstrap",
    "discovery": "discovery",
    "upgradeManifests": "upgrade_manifests",
}


def timeouts_from(document: DecodedObject) -> Timeouts:
    given, default = document.object("timeouts"), Timeouts()
    return Timeouts(
        **{attribute: given.duration(name, getattr(default, attribute)) for name, attribute in _TIMEOUTS.items()}
    )


def timeouts_document(timeouts: Timeouts) -> dict[str, Json]:
    return {name: str(getattr(timeouts, attribute)) for name, attribute in _TIMEOUTS.items()}


def patches_from(document: DecodedObject) -> str | None:
    return document.object("patches").text("directory") if "patches" in document else None


def patches_document(directory: str | None) -> dict[str, Json]:
    return {} if directory is None else {"patches": without_empty(directory=directory)}


def pull_policy_from(document: DecodedObject) -> ImagePullPolicy:
    # Validation comes next and refuses what is no policy.
    return cast("ImagePullPolicy", document.text("imagePullPolicy", DEFAULT_IMAGE_PULL_POLICY))


def _token(document: DecodedObject) -> BootstrapToken:
    return BootstrapToken(
        token=document.text("token"),
        description=document.text("description"),
        # kubeadm gives every token a time to live, also one with `expires`, and then refuses the pair.
        ttl=document.duration("ttl", DEFAULT_TOKEN_TTL),
        expires=document.text("expires"),
        usages=document.texts("usages") or DEFAULT_TOKEN_USAGES,
        groups=document.texts("groups") or DEFAULT_TOKEN_GROUPS,
    )


def _token_document(token: BootstrapToken) -> dict[str, Json]:
    return without_empty(
        token=token.token,
        description=token.description,
        ttl=None if token.ttl is None else str(token.ttl),
        expires=token.expires,
        usages=[*token.usages],
        groups=[*token.groups],
    )


def _registration(document: DecodedObject) -> NodeRegistration:
    return NodeRegistration(
        name=document.text("name"),
        cri_socket=document.text("criSocket"),
        taints=tuple(_taint(taint) for taint in document.objects("taints")) if "taints" in document else None,
        kubelet_extra_args=args_from(document.objects("kubeletExtraArgs")),
        ignore_preflight_errors=document.texts("ignorePreflightErrors"),
        image_pull_policy=pull_policy_from(document),
        image_pull_serial=document.flag("imagePullSerial", default=True),
    )


def _registration_document(node: NodeRegistration) -> dict[str, Json]:
    document = without_empty(
        name=node.name,
        criSocket=node.cri_socket,
        kubeletExtraArgs=args_document(node.kubelet_extra_args),
        ignorePreflightErrors=[*node.ignore_preflight_errors],
        imagePullPolicy=node.image_pull_policy,
    )
    document["imagePullSerial"] = node.image_pull_serial
    if node.taints is not None:
        document["taints"] = [_taint_document(taint) for taint in node.taints]
    return document


def _taint(document: DecodedObject) -> Taint:
    return Taint(
        key=document.text("key"),
        effect=document.text("effect"),
        value=document.text("value"),
        time_added=document.text("timeAdded"),
    )


def _taint_document(taint: Taint) -> dict[str, Json]:
    return without_empty(key=taint.key, effect=taint.effect, value=taint.value, timeAdded=taint.time_added)


def _endpoint(document: DecodedObject) -> ApiEndpoint:
    return ApiEndpoint(
        advertise_address=document.text("advertiseAddress"), bind_port=document.number("bindPort", DEFAULT_BIND_PORT)
    )


def _endpoint_document(endpoint: ApiEndpoint) -> dict[str, Json]:
    return without_empty(advertiseAddress=endpoint.advertise_address, bindPort=endpoint.bind_port)


def _discovery(document: DecodedObject) -> TokenDiscovery | FileDiscovery:
    """Convert token or file discovery, whichever is given; validation reports if both or neither is."""
    if "bootstrapToken" not in document:
        path = document.object("file").text("kubeConfigPath")
        return FileDiscovery(kube_config_path=re.sub("^file://[^/]*", "", path, flags=re.IGNORECASE))
    token = document.object("bootstrapToken")
    return TokenDiscovery(
        token=token.text("token"),
        api_server_endpoint=token.text("apiServerEndpoint"),
        ca_cert_hashes=token.texts("caCertHashes"),
        unsafe_skip_ca_verification=token.flag("unsafeSkipCAVerification"),
    )


def _discovery_document(join: JoinConfiguration) -> dict[str, Json]:
    tls_token = without_empty(tlsBootstrapToken=join.tls_bootstrap_token)
    if isinstance(join.discovery, FileDiscovery):
        return {"file": without_empty(kubeConfigPath=join.discovery.kube_config_path), **tls_token}
    token = without_empty(
        token=join.discovery.token,
        apiServerEndpoint=join.discovery.api_server_endpoint,
        caCertHashes=[*join.discovery.ca_cert_hashes],
        unsafeSkipCAVerification=join.discovery.unsafe_skip_ca_verification,
    )
    return {"bootstrapToken": token, **tls_token}
