"""The rules that findings about patches belong to; those about results are in `garboard.rules`."""

from collections.abc import Mapping

from garboard.rules import RESULT_RULES, Rule

_RULES = (
    Rule(
        "unknown-field",
        "A field that the type does not have",
        "The exact minor's type has no such field. kubeadm drops it silently from static Pods and writes it into the"
        " kubelet's configuration, where the kubelet ignores or refuses it. Use the nearest real name.",
        "Use the name that the hint suggests.",
    ),
    Rule(
        "wrong-type",
        "A value that its field cannot hold",
        "Text where a number belongs, a list for a map, a quantity or duration that cannot be read: the patched"
        " document would not decode.",
        "Write the value as the type says: quote text that looks like a number, and the other way round.",
    ),
    Rule(
        "no-merge-key",
        "A list element without its merge key",
        "Lists of this kind are merged by a key. Without it strategic merge cannot tell which element is meant, and"
        " fails.",
        "Add the key to the element.",
    ),
    Rule(
        "repeated-element",
        "Two elements with one merge key",
        "Strategic merge folds elements with an equal key into one, also where the API would allow both (a port used by"
        " two protocols).",
        "Write one element with both contents, or a JSON patch.",
    ),
    Rule(
        "repeated-key",
        "A key that stands twice in one mapping",
        "YAML readers of Kubernetes take the last one without a word; the first is lost.",
        "Remove one of the two.",
    ),
    Rule(
        "bad-directive",
        "A $patch that is neither replace nor delete",
        "Strategic merge knows `$patch: replace` and `$patch: delete`; anything else fails.",
        "Write `$patch: replace` or `$patch: delete`.",
    ),
    Rule(
        "bad-directive-format",
        "A malformed $retainKeys, $setElementOrder or $deleteFromPrimitiveList",
        "These directives name fields and take lists; strategic merge fails on anything else.",
        "Write a list, and the field's name after the slash.",
    ),
    Rule(
        "leaked-directive",
        "A directive that stays in the result as data",
        "Directives act in strategic patches, on maps and on lists with a merge key. Elsewhere they are copied into the"
        " result.",
        "Use a strategic patch, or leave the directive out.",
    ),
    Rule(
        "ignored-content",
        "Content beside $patch that has no effect",
        "Beside `$patch: delete`, and in a list element with `$patch: replace`, nothing else counts.",
        "Remove the content, or the directive.",
    ),
    Rule(
        "element-types",
        "List elements of different kinds",
        "A list that is merged must hold elements of one kind, and no null.",
        "Write elements of one kind, and `$patch: delete` to remove one.",
    ),
    Rule(
        "bad-document",
        "A document that is no patch of its type",
        "The text cannot be read, a strategic or merge patch is no mapping, or a JSON patch is no list.",
        "Correct the text at the place that the message names.",
    ),
    Rule(
        "bad-operation",
        "A JSON patch operation that is not one",
        "An operation needs `op` (add, remove, replace, move, copy or test), `path`, and `value` or `from` as RFC 6902"
        " demands.",
        "Add what is missing, or correct the name of the operation.",
    ),
    Rule(
        "bad-index",
        "A list index that is none",
        "In a JSON pointer a list element goes by its number, or by `-` for the place after the last.",
        "Write a number or `-`.",
    ),
    Rule(
        "path-missing",
        "A JSON pointer to nothing",
        "Parents are never created, and replacing what is not there is an error by RFC 6902, even though kubectl adds"
        " it.",
        "Add the parent first, or use `add` instead of `replace`.",
    ),
    Rule(
        "bad-root",
        "A document replaced by a scalar",
        "The whole document can only become a mapping or a list.",
        "Write a mapping or a list.",
    ),
    Rule(
        "test-failed",
        "A JSON patch test that fails",
        "The document holds another value than the patch was made for.",
        "Adapt the patch to the document, or the test to what it should guard.",
    ),
    Rule(
        "not-a-struct",
        "A map or list merged below a plain map",
        "The members of a plain map have no fields, so strategic merge cannot merge maps or lists in it.",
        "Use a merge or JSON patch for this part.",
    ),
    Rule(
        "not-a-list",
        "A list for a field that is none",
        "Both sides hold a list, but the type says otherwise.",
        "Use a merge or JSON patch for this field.",
    ),
    Rule(
        "order-mismatch",
        "A list that contradicts its $setElementOrder",
        "Every element of the list must stand in the order list, in the same order.",
        "List all elements of the patch in the order list, in the same order.",
    ),
    Rule(
        "unsupported-kind",
        "A strategic patch for a kind without a known type",
        "Use a merge or JSON patch for custom resources.",
        "Use `--type merge` or `--type json`, or name a built-in type with `--kind`.",
    ),
    Rule(
        "kind-change",
        "A patch that changes apiVersion or kind",
        "kubeadm then silently writes the unpatched document.",
        "Remove apiVersion and kind from the patch, or make them those of the document.",
    ),
    Rule(
        "zero-match",
        "A patch that finds nothing to act on",
        "What the patch wants to change, remove or select is not there; often the name is misspelt.",
        "Correct the name, or remove the part of the patch.",
    ),
    Rule(
        "no-change",
        "A patch that changes nothing",
        "The document already is what the patch asks for.",
        "Remove the patch, or look for a misspelt field.",
    ),
    Rule(
        "overlapping-patches",
        "Two patches that write one field",
        "The patch that is applied later wins; the order is that of file names, and of layers in a patch tree.",
        "Say it in one place.",
    ),
    Rule(
        "deprecated-flag",
        "A flag that will go",
        "The component still takes it and a later minor will not.",
        "Look up the flag or the configuration file that replaces it.",
    ),
    Rule(
        "missing-program",
        "A command without its program",
        "Strategic merge replaces `command` whole: the first word must be the program, and every flag must be listed.",
        "Write the program as the first word, or use a `+args` patch.",
    ),
    Rule(
        "unknown-kind",
        "A patch set that selects a kind which is nearly a built-in one",
        "The entry would select no object. A kind that is not built in is taken for a custom resource unless its name"
        " is this close.",
        "Write the kind that the hint suggests.",
    ),
    Rule(
        "unknown-target",
        "A file whose name is almost that of a target",
        "kubeadm ignores files that are not named after one of its targets, with a line in its output that few read.",
        "Rename the file after the target that the hint suggests.",
    ),
    Rule(
        "ignored-file",
        "A file that is no patch",
        "kubeadm ignores it: its name or its place says nothing to it.",
        "Rename or move the file, or leave it if it is no patch.",
    ),
    Rule(
        "bad-file-name",
        "An unknown type after `+`",
        "kubeadm refuses the whole directory.",
        "Use strategic, merge or json after `+`; `+args` needs a patch tree.",
    ),
    Rule(
        "bad-exception",
        "A comment that makes no exception",
        "`# garboard:` comments accept a danger or silence a finding of lint. Without a reason, or for a rule that does"
        " not exist or cannot be accepted, they do nothing.",
        "Write `# garboard: accept CODE because REASON`, or `ignore` instead of `accept`.",
    ),
    Rule(
        "unknown-layer",
        "A layer that no node has",
        "The folders below role/ are control-plane and worker, those below node/ the names of nodes. A patch in any"
        " other is never applied.",
        "Move the patch to a layer that a node has.",
    ),
)

RULES: Mapping[str, Rule] = {**{rule.id: rule for rule in _RULES}, **RESULT_RULES}


def rule_of(error_class: str) -> Rule:
    """Return the rule behind a finding; the engine's rarer failures explain themselves in their messages."""
    return RULES.get(error_class) or Rule(error_class, error_class.replace("-", " ").capitalize(), "See the message.")
