"""The security settings of a Pod and its containers."""

from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found
from garboard.rules.formats import dotted_sysctl, relative_path

_LONGEST_PROFILE = 4095
_NETWORK_SYSCTLS, _IPC_SYSCTLS = ("net.",), ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def check_security(context: DocumentField, *, uses_host_users: bool) -> Found:
    """Yield what is wrong with the securityContext of a container."""
    yield from _check_profiles(context)
    if context["procMount"].text == "Unmasked" and uses_host_users:
        yield context["procMount"].finding("forbidden-field", "Unmasked needs hostUsers: false")
    escalation = context["allowPrivilegeEscalation"]
    if escalation.is_false and context["privileged"].is_true:
        yield escalation.finding("forbidden-field", "a privileged container cannot be kept from it")
    if escalation.is_false and "CAP_SYS_ADMIN" in context["capabilities"]["add"].words:
        yield escalation.finding("forbidden-field", "CAP_SYS_ADMIN allows it anyway")


def check_pod_security(spec: DocumentField) -> Found:
    """Yield what is wrong with the securityContext of the Pod, and with the namespaces that it shares."""
    context = spec["securityContext"]
    yield from _check_profiles(context)
    yield from _check_sysctls(spec)
    if spec["os"]["name"].text == "linux":
        containers = (*spec["containers"].elements(), *spec["initContainers"].elements())
        for each in (context, *(container["securityContext"] for container in containers)):
            if each["windowsOptions"].is_given:
                yield each["windowsOptions"].finding("forbidden-field", "the Pod is for Linux")
    if spec["shareProcessNamespace"].is_true and spec["hostPID"].is_true:
        yield spec["shareProcessNamespace"].finding("forbidden-field", "hostPID excludes it")
    if spec["hostUsers"].is_false:
        for name in ("hostNetwork", "hostPID", "hostIPC"):
            if spec[name].is_true:
                yield spec[name].finding("forbidden-field", "hostUsers: false excludes it")


def _check_sysctls(spec: DocumentField) -> Found:
    names: set[str] = set()
    for each in spec["securityContext"]["sysctls"].elements():
        name = each["name"]
        dotted = dotted_sysctl(name.text)
        if not name.text:
            yield name.finding("required-field", "a sysctl needs a name")
        elif name.text in names:
            yield name.finding("duplicate-name", f"{name.text!r} stands twice")
        names.add(name.text)
        if spec["hostNetwork"].is_true and dotted.startswith(_NETWORK_SYSCTLS):
            yield name.finding("forbidden-field", "with hostNetwork it would change the host")
        if spec["hostIPC"].is_true and dotted.startswith(_IPC_SYSCTLS):
            yield name.finding("forbidden-field", "with hostIPC it would change the host")


def _check_profiles(context: DocumentField) -> Found:
    seccomp, apparmor = context["seccompProfile"], context["appArmorProfile"]
    for profile in (seccomp, apparmor):
        if not profile.is_given:
            continue
        path = profile["localhostProfile"]
        if not profile["type"].text:
            yield profile["type"].finding("required-field", "a profile needs its type")
        if profile["type"].text != "Localhost":
            if path.is_given and (profile is seccomp or profile["type"].text in ("RuntimeDefault", "Unconfined")):
                yield path.finding("forbidden-field", "only the type Localhost has one")
        elif not path.is_given or (profile is apparmor and not path.text.strip()):
            yield path.finding("required-field", "the type Localhost needs it")
        elif profile is seccomp and relative_path(path.text):
            yield path.finding("bad-path", f"{path.text!r} {relative_path(path.text)}")
        elif profile is apparmor and (path.text != path.text.strip() or len(path.text.encode()) > _LONGEST_PROFILE):
            yield path.finding("bad-format", "it has blanks around it, or is too long")
