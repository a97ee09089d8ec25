"""Write docs/lint-codes.md from the tables of rules.

python -m tools.lint_codes
"""

import sys
from pathlib import Path

from garboard.patches.rules import RULES
from garboard.rules import Rule, RuleKind

PAGE = Path(__file__).parents[1] / "docs/lint-codes.md"
INTRODUCTION = """\
# Lint codes

Every finding of `garboard patch lint` and of strict mode has a code: the word in brackets. Codes are stable. This page
is written by `python -m tools.lint_codes` from the tables that the program uses, so that the two cannot differ.

| kind | who says so | exceptions |
| --- | --- | --- |
| [validity](#validity) | the API server, the kubelet or the component of the minor refuses the result | none |
| [danger](#danger) | our own judgement: the cluster loses something that it needs | `--accept CODE`, or a comment |
| [patches](#patches) | the patch itself is wrong, doubtful or without effect | none |

Validity and danger are judged on results: the patches are tried on the manifests that `-f` names, on what `--config`
renders, or else on what kubeadm renders by default. What the unpatched manifest has wrong already is not told.
`--compat` applies patches as kubeadm and kubectl do, whatever the findings.

## Exceptions

A comment in the patch accepts a danger, in lint and in strict mode (`patch apply`, `init --strict-patches` and others).
It needs a reason:

```yaml
# garboard: accept probe-removed because the load balancer probes /readyz itself
spec:
  containers:
  - name: kube-apiserver
    livenessProbe: null
```

An accepted danger is still shown, as a note with its reason. Patches in JSON have no comments: use `--accept CODE`,
which `patch lint`, `apply`, `diff` and `explain` take, and `init` and `join` beside `--strict-patches`.

In lint, findings of every kind can be silenced, for one patch by `# garboard: ignore CODE because REASON`, for the
whole run by `--disable CODE`; strict mode does not heed these. `--warnings-as-errors` lets warnings fail the run.
"""
SECTIONS = (
    (
        RuleKind.VALIDITY,
        "Validity",
        "What Kubernetes itself refuses, by the rules of the minor. None of these can be accepted.",
    ),
    (RuleKind.DANGER, "Danger", "What a change takes away. Each of these can be accepted."),
    (
        RuleKind.PATCH,
        "Patches",
        "What is wrong with a patch, whatever it is applied to. None of these can be accepted.",
    ),
)


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for kind, title, text in SECTIONS:
        parts.append(f"\n## {title}\n\n{text}\n")
        parts += [_entry(rule) for rule in RULES.values() if rule.kind is kind]
    return "".join(parts)


def _entry(rule: Rule) -> str:
    return f"\n### {rule.id}\n\n{rule.summary}. {rule.help}\n\nMend it: {rule.mend}\n"


def main() -> int:
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
