"""The rules that findings belong to: their stable names, what each is about and why it matters."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    summary: str
    help: str


_RULES = (
    Rule(
        "unknown-field",
        "A field that the type does not have",
        "The exact minor's type has no such field. kubeadm drops it silently from static Pods and writes it into the"
        " kubelet's configuration, where the kubelet ignores or refuses it. Use the nearest real name.",
    ),
    Rule(
        "wrong-type",
        "A value that its field cannot hold",
        "Text where a number belongs, a list for a map, a quantity or duration that cannot be read: the patched"
        " document would not decode.",
    ),
    Rule(
        "no-merge-key",
        "A list element without its merge key",
        "Lists of this kind are merged by a key. Without it strategic merge cannot tell which element is meant, and"
        " fails.",
    ),
    Rule(
        "repeated-element",
        "Two elements with one merge key",
        "Strategic merge folds elements with an equal key into one, also where the API would allow both (a port used by"
        " two protocols).",
    ),
    Rule(
        "repeated-key",
        "A key that stands twice in one mapping",
        "YAML readers of Kubernetes take the last one without a word; the first is lost.",
    ),
    Rule(
        "bad-directive",
        "A $patch that is neither replace nor delete",
        "Strategic merge knows `$patch: replace` and `$patch: delete`; anything else fails.",
    ),
    Rule(
        "bad-directive-format",
        "A malformed $retainKeys, $setElementOrder or $deleteFromPrimitiveList",
        "These directives name fields and take lists; strategic merge fails on anything else.",
    ),
    Rule(
        "leaked-directive",
        "A directive that stays in the result as data",
        "Directives act in strategic patches, on maps and on lists with a merge key. Elsewhere they are copied into the"
        " result.",
    ),
    Rule(
        "ignored-content",
        "Content beside $patch that has no effect",
        "Beside `$patch: delete`, and in a list element with `$patch: replace`, nothing else counts.",
    ),
    Rule(
        "element-types",
        "List elements of different kinds",
        "A list that is merged must hold elements of one kind, and no null.",
    ),
    Rule(
        "bad-document",
        "A document that is no patch of its type",
        "The text cannot be read, a strategic or merge patch is no mapping, or a JSON patch is no list.",
    ),
    Rule(
        "bad-operation",
        "A JSON patch operation that is not one",
        "An operation needs `op` (add, remove, replace, move, copy or test), `path`, and `value` or `from` as RFC 6902"
        " demands.",
    ),
    Rule(
        "bad-index",
        "A list index that is none",
        "In a JSON pointer a list element goes by its number, or by `-` for the place after the last.",
    ),
    Rule(
        "path-missing",
        "A JSON pointer to nothing",
        "Parents are never created, and replacing what is not there is an error by RFC 6902, even though kubectl adds"
        " it.",
    ),
    Rule("bad-root", "A document replaced by a scalar", "The whole document can only become a mapping or a list."),
    Rule(
        "test-failed", "A JSON patch test that fails", "The document holds another value than the patch was made for."
    ),
    Rule(
        "not-a-struct",
        "A map or list merged below a plain map",
        "The members of a plain map have no fields, so strategic merge cannot merge maps or lists in it.",
    ),
    Rule("not-a-list", "A list for a field that is none", "Both sides hold a list, but the type says otherwise."),
    Rule(
        "order-mismatch",
        "A list that contradicts its $setElementOrder",
        "Every element of the list must stand in the order list, in the same order.",
    ),
    Rule(
        "unsupported-kind",
        "A strategic patch for a kind without a known type",
        "Use a merge or JSON patch for custom resources.",
    ),
    Rule(
        "kind-change", "A patch that changes apiVersion or kind", "kubeadm then silently writes the unpatched document."
    ),
    Rule(
        "zero-match",
        "A patch that finds nothing to act on",
        "What the patch wants to change, remove or select is not there; often the name is misspelt.",
    ),
    Rule("no-change", "A patch that changes nothing", "The document already is what the patch asks for."),
    Rule(
        "overlapping-patches",
        "Two patches that write one field",
        "The patch that is applied later wins; the order is that of file names, and of layers in a patch tree.",
    ),
    Rule(
        "unknown-flag",
        "A flag that the component does not have",
        "The component of this minor refuses to start with a flag it does not know.",
    ),
    Rule("deprecated-flag", "A flag that will go", "The component still takes it and a later minor will not."),
    Rule(
        "bad-flag-value",
        "A flag value that cannot be read",
        "The component refuses to start with a value its flag cannot read, or a plugin or controller it does not know.",
    ),
    Rule(
        "unknown-feature-gate",
        "A feature gate that the component does not have",
        "The component of this minor refuses to start with a feature gate it does not know.",
    ),
    Rule(
        "locked-feature-gate",
        "A feature gate set against its locked value",
        "The component refuses to start when a locked feature gate is set to anything but its default.",
    ),
    Rule(
        "missing-program",
        "A command without its program",
        "Strategic merge replaces `command` whole: the first word must be the program, and every flag must be listed.",
    ),
    Rule(
        "unknown-target",
        "A file whose name is almost that of a target",
        "kubeadm ignores files that are not named after one of its targets, with a line in its output that few read.",
    ),
    Rule("ignored-file", "A file that is no patch", "kubeadm ignores it: its name or its place says nothing to it."),
    Rule("bad-file-name", "An unknown type after `+`", "kubeadm refuses the whole directory."),
)

RULES = {rule.id: rule for rule in _RULES}


def rule_of(error_class: str) -> Rule:
    """Return the rule behind a finding; the engine's rarer failures explain themselves in their messages."""
    return RULES.get(error_class) or Rule(error_class, error_class.replace("-", " ").capitalize(), "See the message.")
