"""Install configs of the installer `garboard`."""

CONFIG = """\
apiVersion: fleet.garboard.dev/v1alpha1
kind: InstallConfig
metadata: {name: c1}
baseDomain: example.com
platform: {none: {}}
via: simulated {host}
nodesReadyWithin: 1s
hosts:
- {name: cp1, address: 10.89.0.11, role: control-plane}
- {name: cp2, address: 10.89.0.12, role: control-plane}
- {name: worker1, address: 10.89.0.13, role: worker}
kubeadm:
- apiVersion: kubeadm.k8s.io/v1beta4
  kind: ClusterConfiguration
  controlPlaneEndpoint: api.example.com
  networking: {podSubnet: 10.244.0.0/16}
- apiVersion: kubeadm.k8s.io/v1beta4
  kind: JoinConfiguration
  nodeRegistration: {ignorePreflightErrors: [Mem]}
addons:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: default}}
"""
HOSTS = ("cp1", "cp2", "worker1")
