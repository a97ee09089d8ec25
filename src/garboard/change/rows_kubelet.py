"""Rows of the attribute table: KubeletConfiguration. Every field needs a restart of the kubelet, node by node."""

from garboard.change.attribute import AttributeRow, path_of
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGroup:
    """Fields that are alike in what a change of them does."""

    fields: str
    code: str = ""
    why: str
    route: str = ""
    follow_ups: tuple[str, ...] = ()
    judge: str = ""
    components: tuple[str, ...] = ("kubelet",)

    def rows(self) -> tuple[AttributeRow, ...]:
        return tuple(
            AttributeRow(
                path=path_of(field),
                components=self.components,
                code=self.code,
                scope="all",
                why=self.why,
                route=self.route,
                follow_ups=self.follow_ups,
                judge=self.judge,
            )
            for field in self.fields.split()
        )


_RECREATE = "restart workloads that should have the new value: kubectl rollout restart"
_GROUPS = (
    FieldGroup(
        fields="""
        syncFrequency fileCheckFrequency httpCheckFrequency registryPullQPS registryBurst eventRecordQPS eventBurst
        enableContentionProfiling oomScoreAdj nodeStatusReportFrequency imageMinimumGCAge imageMaximumGCAge
        volumeStatsAggPeriod cpuManagerReconcilePeriod runtimeRequestTimeout nodeStatusMaxImages maxOpenFiles
        contentType kubeAPIQPS kubeAPIBurst serializeImagePulls maxParallelImagePulls evictionPressureTransitionPeriod
        containerLogMaxSize containerLogMaxFiles containerLogMaxWorkers containerLogMonitorInterval
        configMapAndSecretChangeDetectionStrategy showHiddenMetricsForVersion kernelMemcgNotification logging
        enableProfilingHandler enableDebugFlagsHandler tracing
        """,
        why="the kubelet restarts, node by node; containers keep running",
    ),
    FieldGroup(
        fields="healthzPort healthzBindAddress",
        why="the kubelet restarts, node by node; what probes its health has to look there as well",
    ),
    FieldGroup(
        fields="""imageGCHighThresholdPercent imageGCLowThresholdPercent imagePullCredentialsVerificationPolicy
        preloadedImagesVerificationAllowlist""",
        code="image-loss",
        why="the kubelet restarts, and may delete images or verify them anew",
    ),
    FieldGroup(
        fields="""
        clusterDNS clusterDomain resolvConf seccompDefault podPidsLimit allowedUnsafeSysctls defaultPodSysctls
        cpuCFSQuota cpuCFSQuotaPeriod hairpinMode crashLoopBackOff singleProcessOOMKill memoryThrottlingFactor
        memoryReservationPolicy userNamespaces localStorageCapacityIsolation podLogsDir
        """,
        code="new-pods-only",
        why="the kubelet restarts, and pods that run keep the former value until they are made anew",
        follow_ups=(_RECREATE,),
    ),
    FieldGroup(
        fields="maxPods podsPerCore kubeReserved systemReserved reservedSystemCPUs qosReserved",
        why="a kubelet that restarts admits all its pods again, and fails those that no longer fit",
        judge="capacity",
    ),
    FieldGroup(
        fields="""evictionHard evictionSoft evictionSoftGracePeriod evictionMaxPodGracePeriod evictionMinimumReclaim
        mergeDefaultEvictionSettings""",
        code="evicts-pods",
        why=(
            "pods may be evicted at once; to name one signal takes the defaults of the others away, unless"
            " mergeDefaultEvictionSettings is true"
        ),
        route="compare the thresholds with `kubectl describe node` first",
    ),
    FieldGroup(
        fields="""cpuManagerPolicy cpuManagerPolicyOptions memoryManagerPolicy reservedMemory topologyManagerPolicy
        topologyManagerScope topologyManagerPolicyOptions""",
        code="drain-needed",
        why="the kubelet ends when its state file was written with another policy: drained, stopped, file removed",
        route="each node is drained, and its pods move to others: see that these have room",
        judge="drain",
    ),
    FieldGroup(
        fields="cgroupDriver",
        code="cgroup-driver",
        why="another driver than that of the container runtime breaks every pod of the node",
        route="drain the node, stop kubelet and runtime, change both, start them; node by node",
    ),
    FieldGroup(
        fields="""cgroupRoot cgroupsPerQOS kubeletCgroups systemCgroups kubeReservedCgroup systemReservedCgroup
        enforceNodeAllocatable""",
        code="cgroup-layout",
        why="the cgroups of the node change; systemCgroups cannot be taken back without a reboot",
        route="make the cgroups that are named on every node first",
        judge="drain",
    ),
    FieldGroup(
        fields="failSwapOn memorySwap failCgroupV1 protectKernelDefaults featureGates",
        code="host-dependent",
        why="the kubelet does not start where swap, the version of cgroups, the kernel's settings or a gate do not fit",
        route="look at every node first (swapon, stat -fc %T /sys/fs/cgroup, sysctl)",
    ),
    FieldGroup(
        fields="staticPodPath staticPodURL staticPodURLHeader",
        code="static-pods-off",
        why="all static pods of the control plane would go away at once",
        route="leave it as kubeadm sets it: /etc/kubernetes/manifests",
    ),
    FieldGroup(
        fields="registerNode runOnce",
        code="host-dependent",
        why="the kubelet no longer makes its node known, or does not start at all",
    ),
    FieldGroup(
        fields="registerWithTaints",
        code="registration-only",
        why="nodes that are registered keep their taints",
        route="kubectl taint node NAME",
    ),
    FieldGroup(
        fields="providerID",
        code="immutable",
        why="it cannot be changed once it is set, and is another one on each node",
        route="take the node out of the cluster (garboard reset) and let it join again with its own",
    ),
    FieldGroup(fields="podCIDR", code="standalone-only", why="a kubelet with an API server takes it from its Node"),
    FieldGroup(
        fields="containerRuntimeEndpoint",
        components=(),  # each node writes its own over it
        code="node-setting",
        why="the socket is a setting of each node",
        route="drain the node, change instance-config.yaml there, and restart its kubelet",
    ),
    FieldGroup(
        fields="imageServiceEndpoint",
        code="node-setting",
        why="the socket is a setting of each node",
        route="drain the node, change instance-config.yaml there, and restart its kubelet",
    ),
    FieldGroup(
        fields="""
        enableServer address port readOnlyPort tlsCertFile tlsPrivateKeyFile tlsCipherSuites tlsCurvePreferences
        tlsMinVersion authentication authorization enableDebuggingHandlers enableSystemLogHandler enableSystemLogQuery
        """,
        code="kubelet-api",
        why="logs, exec and metrics go through the API of the kubelet",
        follow_ups=("kubectl get --raw /api/v1/nodes/NAME/proxy/healthz, for each node",),
    ),
    FieldGroup(
        fields="rotateCertificates",
        components=(),
        code="no-effect",
        why="kubeadm sets it to true, whatever is written",
    ),
    FieldGroup(
        fields="serverTLSBootstrap",
        code="kubelet-api",
        why="serving certificates wait until somebody approves them; until then logs and exec fail",
        follow_ups=("kubectl get csr; kubectl certificate approve NAME, for each node",),
    ),
    FieldGroup(fields="streamingConnectionIdleTimeout", code="no-effect", why="the kubelet no longer reads it"),
    FieldGroup(
        fields="nodeStatusUpdateFrequency nodeLeaseDurationSeconds",
        code="health-timing",
        why="nodes turn NotReady unless it stays well below node-monitor-grace-period of kube-controller-manager",
    ),
    FieldGroup(
        fields="enableControllerAttachDetach",
        code="attach-detach",
        why="volumes that are attached would have two owners",
        route="drain the node, change its own configuration with a patch, and restart its kubelet",
    ),
    FieldGroup(
        fields="volumePluginDir",
        code="host-dependent",
        why="kube-controller-manager has the same setting, and both have to agree",
        route="set controllerManager.extraArgs[flex-volume-plugin-dir] as well",
    ),
    FieldGroup(
        fields="shutdownGracePeriod shutdownGracePeriodCriticalPods shutdownGracePeriodByPodPriority",
        code="shutdown",
        why="logind has to allow as long an inhibition, and the two styles exclude each other",
        route="look at InhibitDelayMaxSec of logind on every node",
    ),
    FieldGroup(fields="makeIPTablesUtilChains", why="the kubelet restarts, node by node; containers keep running"),
    FieldGroup(fields="iptablesMasqueradeBit iptablesDropBit", code="no-effect", why="the kubelet no longer reads it"),
)

KUBELET_ROWS: tuple[AttributeRow, ...] = (
    *(row for group in _GROUPS for row in group.rows()),
    AttributeRow(path=("apiVersion",), why="the version of the document"),
    AttributeRow(path=("kind",), why="the kind of the document"),
)
