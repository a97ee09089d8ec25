"""Rules that judge results: what Kubernetes refuses in static Pods, workloads, kubelet configurations and flags.

They tell what a cluster loses by a change as well, which is our own judgement. Pure, by minor, with stable codes; who
made the result, and from which patch or configuration, is left to the callers: `patches`, `config`, `change`.
"""

from garboard.rules.codes import RESULT_RULES
from garboard.rules.control_plane import ComponentPod
from garboard.rules.danger import weakened, weakened_workload
from garboard.rules.danger_kubelet import weakened_kubelet
from garboard.rules.field_values import bad_field_value
from garboard.rules.fields import DocumentField
from garboard.rules.findings import ResultFinding
from garboard.rules.flag_etcd import renamed_flag
from garboard.rules.flags import check_flags, flag_rules
from garboard.rules.judgement import check_component
from garboard.rules.kube_proxy import check_kube_proxy
from garboard.rules.kubelet import check_kubelet
from garboard.rules.pod import check_pod
from garboard.rules.rule import Rule, RuleKind
from garboard.rules.workload import check_workload

__all__ = [
    "RESULT_RULES",
    "ComponentPod",
    "DocumentField",
    "ResultFinding",
    "Rule",
    "RuleKind",
    "bad_field_value",
    "check_component",
    "check_flags",
    "check_kube_proxy",
    "check_kubelet",
    "check_pod",
    "check_workload",
    "flag_rules",
    "renamed_flag",
    "weakened",
    "weakened_kubelet",
    "weakened_workload",
]
