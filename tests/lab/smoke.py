"""What every cluster must be able to do: run a Deployment, reach it by the name of its Service, exec, logs."""

from pathlib import Path

from tests.lab.conftest import LabUnderTest
from tests.lab.webimage import NAME, pod, service, write_web_image

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
      containers:
      - name: web
        image: NAME
        imagePullPolicy: Never
        command: [busybox, sh, -c, "echo ready; echo from web >/www/index.html; exec busybox httpd -f -p 8080 -h /www"]
"""


def smoke(lab: LabUnderTest, folder: Path, client_on: str) -> None:
    """Deploy, ask by DNS name from a pod on `client_on`, exec into it and read its log; leave nothing behind."""
    write_web_image(folder / "web.tar")
    lab.lab("load", str(folder / "web.tar"))
    client = pod("client", client_on, "sh", "-c", "busybox sleep 600")
    lab.kubectl("apply", "-f", "-", stdin="---\n".join([_DEPLOYMENT.replace("NAME", NAME), service("web"), client]))
    try:
        lab.kubectl("rollout", "status", "deployment/web", "--timeout=180s")
        lab.kubectl("wait", "--for=condition=Ready", "pod/client", "--timeout=120s")
        once = "busybox timeout 3 busybox wget -q -O - http://web.default.svc.cluster.local"
        fetch = f"for i in $(busybox seq 60); do {once} && exit 0; busybox sleep 1; done; exit 1"
        assert lab.kubectl("exec", "client", "--", "busybox", "sh", "-c", fetch) == "from web\n"
        assert lab.kubectl("logs", "-l", "app=web").count("ready") == 2
    finally:
        lab.kubectl("delete", "deployment/web", "service/web", "pod/client", "--now", check=False)
