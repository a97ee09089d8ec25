"""An etcd outside the cluster: it runs as a plain process on a node of the lab, with certificates of its own."""

from dataclasses import dataclass

from tools.harness.lab import LabUnderTest, put

FOLDER = "/srv/etcd"
CA, CLIENT = "/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/apiserver-etcd-client"
_CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {address}}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
certificatesDir: /srv/etcd
"""
_START = """\
for name in etcd-ca etcd-server apiserver-etcd-client; do
  kubeadm init phase certs $name --config /srv/config.yaml
done
cd /srv/etcd
setsid nohup {program} --name outside --data-dir /srv/etcd/data \\
  --listen-client-urls https://{address}:2379 --advertise-client-urls https://{address}:2379 \\
  --cert-file etcd/server.crt --key-file etcd/server.key --client-cert-auth --trusted-ca-file etcd/ca.crt \\
  </dev/null >/srv/etcd.log 2>&1 &
"""


@dataclass(frozen=True)
class ExternalEtcd:
    """etcd on a node, by address."""

    lab: LabUnderTest
    node: str
    address: str

    def start(self, program: str, version: str) -> None:
        put(self.lab, self.node, "/srv/config.yaml", _CONFIG.format(address=self.address, version=version))
        self.lab.exec(self.node, "sh", "-c", _START.format(address=self.address, program=program))

    @property
    def document(self) -> str:
        """What a ClusterConfiguration says of it."""
        files = f"caFile: {CA}, certFile: {CLIENT}.crt, keyFile: {CLIENT}.key"
        return f"etcd: {{external: {{endpoints: ['https://{self.address}:2379'], {files}}}}}\n"

    def give_client(self, node: str) -> None:
        """Copy to a node what its API server needs."""
        for path, source in (
            (CA, "etcd/ca.crt"),
            (f"{CLIENT}.crt", "apiserver-etcd-client.crt"),
            (f"{CLIENT}.key", "apiserver-etcd-client.key"),
        ):
            text = self.lab.exec(self.node, "cat", f"{FOLDER}/{source}").stdout
            self.lab.exec(node, "mkdir", "-p", path.rpartition("/")[0])
            put(self.lab, node, path, text)

    def ask(self, *words: str) -> str:
        """Return what etcdctl answers."""
        folder = f"{FOLDER}/"
        access = (
            f"--cacert={folder}etcd/ca.crt", f"--cert={folder}apiserver-etcd-client.crt",
            f"--key={folder}apiserver-etcd-client.key", f"--endpoints=https://{self.address}:2379",
        )  # fmt: skip
        return self.lab.exec(self.node, "etcdctl", *access, *words).stdout
