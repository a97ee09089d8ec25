"""The volumes of a static Pod, and what a static Pod may not refer to."""

from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found
from garboard.rules.pod_containers import check_field_reference, check_resource_reference
from garboard.rules.quantities import amount

# The fields without which a source means nothing; those that refer to objects of the API are not for static Pods.
_REQUIRED: dict[str, tuple[str, ...]] = {
    "emptyDir": (),
    "hostPath": ("path",),
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "rbd": ("monitors", "image"),
    "flexVolume": ("driver",),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "flocker": (),
    "downwardAPI": (),
    "fc": (),
    "vsphereVolume": ("volumePath",),
    "quobyte": ("registry", "volume"),
    "azureDisk": ("diskName", "diskURI"),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "storageos": ("volumeName",),
    "projected": (),
    "image": (),
}
_API_SOURCES = {
    "configMap": "a ConfigMap",
    "secret": "a Secret",
    "csi": "a CSI driver",
    "glusterfs": "Endpoints",
    "persistentVolumeClaim": "a claim",
    "ephemeral": "a claim",
    "azureFile": "a Secret",
}
_API_PROJECTIONS = {
    "configMap": "a ConfigMap",
    "secret": "a Secret",
    "serviceAccountToken": "a service account",
    "clusterTrustBundle": "a ClusterTrustBundle",
    "podCertificate": "a certificate request",
}
_SOURCES = (*_REQUIRED, *_API_SOURCES)
_FILE_FIELDS = ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")


def check_volume(volume: DocumentField) -> Found:
    """Yield what is wrong with one volume: its name and its source."""
    if not volume["name"].text:
        yield volume["name"].finding("required-field", "a volume needs a name")
    given = [name for name in _SOURCES if volume[name].is_given]
    if not given:  # it is an emptyDir
        return
    if len(given) > 1:
        message = f"the volume {volume['name'].text!r} has {' and '.join(given)}, and can have one source"
        yield volume[given[-1]].finding("several-sources", message)
        return
    source = volume[given[0]]
    if given[0] in _API_SOURCES:
        yield source.finding("api-reference", f"a static Pod cannot use {_API_SOURCES[given[0]]}")
        return
    for name in _REQUIRED[given[0]]:
        if not source[name].text and not source[name].elements():
            yield source[name].finding("required-field", f"{given[0]} needs it")
    if source["secretRef"]["name"].text:
        yield source["secretRef"].finding("api-reference", "a static Pod cannot use a Secret")
    yield from _check_source(given[0], source)


def _check_source(kind: str, source: DocumentField) -> Found:
    match kind:
        case "emptyDir":
            limit = amount(source["sizeLimit"].value)
            if limit is not None and limit < 0:
                yield source["sizeLimit"].finding("out-of-range", "a size must not be negative")
        case "cinder":
            if source["secretRef"].is_given and not source["secretRef"]["name"].text:
                yield source["secretRef"]["name"].finding("required-field", "a reference needs a name")
        case "nfs":
            if source["path"].text and not source["path"].text.startswith("/"):
                yield source["path"].finding("bad-path", "it must be an absolute path")
        case "downwardAPI":
            for file in source["items"].elements():
                yield from _check_file(file)
        case "projected":
            yield from _check_projections(source)
        case _:
            pass


def _check_projections(source: DocumentField) -> Found:
    paths: set[str] = set()
    for projection in source["sources"].elements():
        given = [name for name in ("downwardAPI", *_API_PROJECTIONS) if projection[name].is_given]
        if not given:
            yield projection.finding("required-field", "a projection needs a source")
        if len(given) > 1:
            yield projection.finding("several-sources", "a projection has one source")
        for name in given:
            if name in _API_PROJECTIONS:
                yield projection[name].finding("api-reference", f"a static Pod cannot use {_API_PROJECTIONS[name]}")
        for file in projection["downwardAPI"]["items"].elements():
            yield from _check_file(file)
            path = file["path"]
            if path.text and path.text in paths:
                yield path.finding("duplicate-mount-path", f"another file is at {path.text} as well")
            paths.add(path.text)


def _check_file(file: DocumentField) -> Found:
    if not file["path"].text:
        yield file["path"].finding("required-field", "a file needs a path")
    field, resource = file["fieldRef"], file["resourceFieldRef"]
    if field.is_given and resource.is_given:
        yield file.finding("several-sources", "fieldRef and resourceFieldRef exclude each other")
    elif field.is_given:
        yield from check_field_reference(field, _FILE_FIELDS)
    elif resource.is_given:
        yield from check_resource_reference(resource, is_file=True)
    else:
        yield file.finding("required-field", "a file needs fieldRef or resourceFieldRef")


def check_references(spec: DocumentField) -> Found:
    """Yield the objects of the API that a static Pod refers to, other than by its volumes."""
    account = spec["serviceAccountName"] if spec["serviceAccountName"].text else spec["serviceAccount"]
    if account.text:
        yield account.finding("api-reference", "a static Pod cannot use a service account")
    for secret in spec["imagePullSecrets"].elements():
        if secret["name"].text:
            yield secret.finding("api-reference", "a static Pod cannot use a Secret")
    if spec["resourceClaims"].elements():
        yield spec["resourceClaims"].finding("api-reference", "a static Pod cannot use resource claims")
    for container in (*spec["containers"].elements(), *spec["initContainers"].elements()):
        sources = [each["valueFrom"] for each in container["env"].elements()] + container["envFrom"].elements()
        for source in sources:
            for name, what in (
                ("secretKeyRef", "Secret"),
                ("secretRef", "Secret"),
                ("configMapKeyRef", "ConfigMap"),
                ("configMapRef", "ConfigMap"),
            ):
                if source[name].is_given:
                    yield source[name].finding("api-reference", f"a static Pod cannot use a {what}")
