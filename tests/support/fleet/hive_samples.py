"""Objects as people write them for Hive itself: with blocks of clouds, and with fields that garboard only keeps."""

SAMPLES = {
    "aws deployment": """
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: mycluster, namespace: default, annotations: {hive.openshift.io/try-install-once: "true"}}
spec:
  baseDomain: hive.example.com
  clusterName: mycluster
  controlPlaneConfig:
    servingCertificates: {default: primary-cert}
  certificateBundles:
  - {name: primary-cert, generate: false, certificateSecretRef: {name: primary-cert}}
  ingress:
  - {name: default, domain: apps.mycluster.hive.example.com, servingCertificate: primary-cert}
  manageDNS: false
  installAttemptsLimit: 3
  hibernateAfter: 8h30m
  powerState: Running
  platform:
    aws:
      credentialsSecretRef: {name: mycluster-aws-creds}
      region: us-east-1
      userTags: {owner: team-a}
      privateLink: {enabled: false}
  provisioning:
    imageSetRef: {name: openshift-v4.16.0}
    installConfigSecretRef: {name: mycluster-install-config}
    sshPrivateKeySecretRef: {name: mycluster-ssh-key}
    sshKnownHosts: ["github.com ssh-rsa AAAA"]
    manifestsConfigMapRef: {name: mycluster-manifests}
    installerEnv:
    - {name: OPENSHIFT_INSTALL_PRESERVE_BOOTSTRAP, value: "true"}
    - name: TOKEN
      valueFrom: {secretKeyRef: {name: s, key: k}}
  pullSecretRef: {name: mycluster-pull-secret}
""",
    "adopted deployment": """
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: adopted, namespace: default, finalizers: [hive.openshift.io/deprovision]}
spec:
  baseDomain: hive.example.com
  clusterName: adopted
  installed: true
  preserveOnDelete: true
  clusterMetadata:
    adminKubeconfigSecretRef: {name: adopted-kubeconfig}
    adminPasswordSecretRef: {name: adopted-password}
    clusterID: 61010067-ad4f-4a80-a4a5-6b9e3e0f8e2d
    infraID: adopted-x7k2p
    platform: {azure: {resourceGroupName: rg}}
  platform: {azure: {baseDomainResourceGroupName: os4-common, credentialsSecretRef: {name: c}, region: centralus}}
  pullSecretRef: {name: p}
status:
  installedTimestamp: "2026-01-01T00:00:00Z"
  conditions:
  - {type: Provisioned, status: "True", reason: Provisioned, message: done, lastProbeTime: null}
""",
    "assisted deployment": """
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: edge, namespace: default}
spec:
  baseDomain: edge.example.com
  clusterName: edge
  clusterInstallRef: {group: extensions.hive.openshift.io, kind: AgentClusterInstall, name: edge, version: v1beta1}
  platform: {agentBareMetal: {agentSelector: {matchLabels: {cluster: edge}}}}
""",
    "pool with a template": """
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: openshift-46-aws-us-east-1, namespace: default}
spec:
  baseDomain: new-installer.openshift.com
  imageSetRef: {name: openshift-v4.6.0}
  installConfigSecretTemplateRef: {name: my-install-config-template}
  skipMachinePools: true
  platform: {aws: {credentialsSecretRef: {name: hive-aws-creds}, region: us-east-1}}
  pullSecretRef: {name: hive-pull-secret}
  size: 3
  runningCount: 1
  maxSize: 10
  maxConcurrent: 2
  hibernateAfter: 30m
  installAttemptsLimit: 1
  labels: {tier: ci}
  annotations: {hive.openshift.io/try-install-once: "true"}
  claimLifetime: {default: 8h, maximum: 12h}
  hibernationConfig: {resumeTimeout: 20m0s}
""",
    "pool with an inventory": """
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: vsphere-pool, namespace: default}
spec:
  baseDomain: vmc.example.com
  imageSetRef: {name: img4.16}
  platform: {vsphere: {vCenter: v, certificatesSecretRef: {name: c}, credentialsSecretRef: {name: d}, network: n}}
  size: 2
  runningCount: 2
  inventory:
  - {name: site-a}
  - {name: site-b, kind: ClusterDeploymentCustomization}
  - {name: site-c, kind: ""}
  customizationRef: {name: pool-wide}
""",
    "claim": """
apiVersion: hive.openshift.io/v1
kind: ClusterClaim
metadata: {name: dgood, namespace: default}
spec:
  clusterPoolName: openshift-46-aws-us-east-1
  lifetime: 4h
  subjects:
  - {kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:masters"}
  - {kind: ServiceAccount, name: ci, namespace: ci}
""",
    "customization": """
apiVersion: hive.openshift.io/v1
kind: ClusterDeploymentCustomization
metadata: {name: site-a, namespace: default, labels: {site: a}}
spec:
  installConfigPatches:
  - {op: replace, path: /metadata/name, value: site-a}
  - {op: add, path: /platform/vsphere/apiVIPs, valueJSON: '["192.168.1.10"]'}
  installerManifestPatches:
  - manifestSelector: {glob: "openshift/99_openshift-cluster-api_master-machines-*.yaml"}
    patches:
    - {op: add, path: /spec/providerSpec/value/securityGroups/-, valueJSON: '{"filters":[{"name":"tag:Name"}]}'}
    - {op: copy, from: /metadata/name, path: /metadata/annotations/example.com~1was}
    - {op: test, path: /a~0b, value: ""}
    - {op: remove, path: /spec/x}
""",
    "empty customization": """
apiVersion: hive.openshift.io/v1
kind: ClusterDeploymentCustomization
metadata: {name: nothing, namespace: default}
spec: {}
""",
    "customization of our own": """
apiVersion: hive.openshift.io/v1
kind: ClusterDeploymentCustomization
metadata: {name: own, namespace: default}
spec:
  compat: true
  installerManifestPatches:
  - manifestSelector: {group: machine.openshift.io, kind: MachineSet, labelSelector: "role=worker"}
    type: merge
    onNoMatch: warn
    patch: {spec: {replicas: 3}}
  - manifestSelector: {group: "", kind: ConfigMap, name: cluster-config-v1}
    type: strategic
    patch: |
      data: {a: b}
  - manifestSelector: {glob: "manifests/*"}
    patch: [{op: remove, path: /spec/x}]
""",
    "image set": """
apiVersion: hive.openshift.io/v1
kind: ClusterImageSet
metadata: {name: openshift-v4.16.0}
spec: {releaseImage: "quay.io/openshift-release-dev/ocp-release:4.16.0-x86_64"}
""",
    "provision": """
apiVersion: hive.openshift.io/v1
kind: ClusterProvision
metadata: {name: mycluster-0-abcde, namespace: default}
spec:
  clusterDeploymentRef: {name: mycluster}
  attempt: 0
  stage: initializing
  podSpec: {containers: [{name: hive, image: i, env: [{name: A, value: b}]}], restartPolicy: Never}
""",
    "deprovision": """
apiVersion: hive.openshift.io/v1
kind: ClusterDeprovision
metadata: {name: mycluster, namespace: default}
spec:
  infraID: mycluster-x7k2p
  clusterID: 61010067-ad4f-4a80-a4a5-6b9e3e0f8e2d
  clusterName: mycluster
  platform: {aws: {region: us-east-1, credentialsSecretRef: {name: c}}}
""",
}
