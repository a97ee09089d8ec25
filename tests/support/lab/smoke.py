"""What every cluster must be able to do: run a Deployment, reach its pods by the name of a Service, exec, logs."""

from pathlib import Path

from tests.support.lab.webimage import NAME, pod, service, write_web_image
from tools.harness.lab import LabUnderTest

_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
      containers:
      - name: web
        image: NAME
        imagePullPolicy: Never
        command: [busybox, sh, -c, "echo ready; busybox hostname >/www/index.html; busybox httpd -f -p 8080 -h /www"]
"""


def smoke(lab: LabUnderTest, folder: Path, client_on: str) -> None:
    """Deploy, ask by DNS name from a pod on `client_on`, exec into it and read its log; leave nothing behind.

    Where there are several nodes, the two pods are on different ones, and both have to answer.
    """
    write_web_image(folder / "web.tar")
    lab.lab("load", str(folder / "web.tar"))
    client = pod("client", client_on, "sh", "-c", "busybox sleep 600")
    lab.kubectl("apply", "-f", "-", stdin="---\n".join([_DEPLOYMENT.replace("NAME", NAME), service("web"), client]))
    try:
        lab.kubectl("rollout", "status", "deployment/web", "--timeout=180s")
        lab.kubectl("wait", "--for=condition=Ready", "pod/client", "--timeout=120s")
        listed = lab.kubectl("get", "pods", "-l", "app=web", "-o", "name").split()
        pods = [each.removeprefix("pod/") for each in listed]
        assert len(pods) == 2
        heard = lab.kubectl("exec", "client", "--", "busybox", "sh", "-c", _ask_until_heard(pods))
        assert set(heard.split()) == set(pods)
        assert lab.kubectl("logs", "-l", "app=web").count("ready") == 2
    finally:
        lab.kubectl("delete", "deployment/web", "service/web", "pod/client", "--now", check=False)


def _ask_until_heard(pods: list[str]) -> str:
    """Return a script that asks the Service until each pod has answered, and prints the answers."""
    once = "busybox timeout 3 busybox wget -q -O - http://web.default.svc.cluster.local"
    heard = " && ".join(f"busybox grep -qx {each} /tmp/heard" for each in pods)
    asking = f"{once} >>/tmp/heard; {heard} && break || busybox sleep 0.5"
    return f"for i in $(busybox seq 60); do {asking}; done; busybox cat /tmp/heard"
