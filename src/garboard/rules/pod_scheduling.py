"""Where a Pod may run and how it finds others: tolerations, selectors, affinity, spreading, DNS."""

from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found
from garboard.rules.formats import dns_label, dns_subdomain, label_value, qualified_name

_MOST_NAMESERVERS, _MOST_SEARCHES, _LONGEST_SEARCH = 3, 32, 2048
_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED_TERMS = "preferredDuringSchedulingIgnoredDuringExecution"


def check_scheduling(spec: DocumentField) -> Found:
    for toleration in spec["tolerations"].elements():
        yield from _check_toleration(toleration)
    yield from check_labels(spec["nodeSelector"])
    yield from _check_node_affinity(spec["affinity"]["nodeAffinity"])
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _check_pod_affinity(spec["affinity"][name])
    yield from _check_spreading(spec)
    yield from _check_dns(spec)
    for gate in spec["readinessGates"].elements():
        if not gate["conditionType"].is_given:
            yield gate["conditionType"].finding("required-field", "a readiness gate needs it")
    if spec["schedulingGates"].elements():
        yield spec["schedulingGates"].finding("forbidden-field", "a static Pod is bound to its node already")


def check_labels(labels: DocumentField) -> Found:
    for name, value in labels.members():
        problem = qualified_name(name)
        if problem is not None:
            yield value.finding("bad-name", f"the key {name!r} {problem}")
        problem = label_value(value.text)
        if problem is not None:
            yield value.finding("bad-name", f"the value {value.text!r} {problem}")


def _check_toleration(toleration: DocumentField) -> Found:
    operator, value = toleration["operator"], toleration["value"]
    if not toleration["key"].text and operator.text != "Exists":
        yield operator.finding("unsupported-value", "without a key it must be Exists")
    if toleration["tolerationSeconds"].is_given and toleration["effect"].text != "NoExecute":
        yield toleration["effect"].finding("unsupported-value", "with tolerationSeconds it must be NoExecute")
    if operator.text in ("", "Equal") and label_value(value.text) is not None:
        yield value.finding("bad-name", f"{value.text!r} {label_value(value.text)}")
    elif operator.text == "Exists" and value.text:
        yield value.finding("forbidden-field", "with the operator Exists there is no value")
    elif operator.text in ("Lt", "Gt"):
        yield operator.finding("disabled-feature", "it needs the feature gate TaintTolerationComparisonOperators")


def _check_node_affinity(affinity: DocumentField) -> Found:
    required = affinity[_REQUIRED_TERMS]
    if required.is_given and not required["nodeSelectorTerms"].elements():
        yield required["nodeSelectorTerms"].finding("required-field", "it needs at least one term")
    for term in required["nodeSelectorTerms"].elements():
        yield from _check_node_term(term, is_required=True)
    for term in affinity[_PREFERRED_TERMS].elements():
        yield from _check_weight(term)
        yield from _check_node_term(term["preference"], is_required=False)


def _check_node_term(term: DocumentField, *, is_required: bool) -> Found:
    for each in term["matchExpressions"].elements():
        yield from _check_values(each, ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        problem = qualified_name(each["key"].text)
        if problem is not None:
            yield each["key"].finding("bad-name", f"{each['key'].text!r} {problem}")
        for value in each["values"].elements() if is_required else ():
            if label_value(value.text) is not None:
                yield value.finding("bad-name", f"{value.text!r} {label_value(value.text)}")
    for each in term["matchFields"].elements():
        if each["operator"].text not in ("In", "NotIn"):
            yield each["operator"].finding("unsupported-value", "fields of a node know In and NotIn")
        elif len(each["values"].elements()) != 1:
            yield each["values"].finding("required-field", "it needs exactly one value")
        if each["key"].text != "metadata.name":
            yield each["key"].finding("unsupported-value", "the only field is metadata.name")
        for value in each["values"].elements():
            if dns_subdomain(value.text) is not None:
                yield value.finding("bad-name", f"{value.text!r} {dns_subdomain(value.text)}")


def _check_values(requirement: DocumentField, operators: tuple[str, ...]) -> Found:
    operator, values = requirement["operator"], requirement["values"]
    count = len(values.elements())
    if operator.text not in operators:
        yield operator.finding("unsupported-value", f"{operator.text!r} is none of {', '.join(operators)}")
    elif operator.text in ("In", "NotIn") and not count:
        yield values.finding("required-field", f"{operator.text} needs values")
    elif operator.text in ("Exists", "DoesNotExist") and count:
        yield values.finding("forbidden-field", f"{operator.text} takes no values")
    elif operator.text in ("Gt", "Lt") and count != 1:
        yield values.finding("required-field", f"{operator.text} needs exactly one value")


def _check_weight(term: DocumentField) -> Found:
    if not 1 <= (term["weight"].number or 0) <= 100:
        yield term["weight"].finding("out-of-range", "it must be 1 to 100")


def _check_pod_affinity(affinity: DocumentField) -> Found:
    for term in affinity[_REQUIRED_TERMS].elements():
        yield from _check_pod_term(term)
    for term in affinity[_PREFERRED_TERMS].elements():
        yield from _check_weight(term)
        yield from _check_pod_term(term["podAffinityTerm"])


def _check_pod_term(term: DocumentField) -> Found:
    for name in ("labelSelector", "namespaceSelector"):
        yield from check_selector(term[name])
    for namespace in term["namespaces"].elements():
        if dns_label(namespace.text) is not None:
            yield namespace.finding("bad-name", f"{namespace.text!r} {dns_label(namespace.text)}")
    problem = qualified_name(term["topologyKey"].text)
    if problem is not None:
        yield term["topologyKey"].finding("required-field", f"it {problem}")
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        yield from _check_label_keys(term[name], term["labelSelector"], is_merged=name == "matchLabelKeys")
    for key in term["matchLabelKeys"].elements():
        if key.text in term["mismatchLabelKeys"].words:
            yield key.finding("several-sources", f"{key.text!r} is among the mismatchLabelKeys as well")


def check_selector(selector: DocumentField) -> Found:
    """Yield what is wrong with a label selector."""
    yield from check_labels(selector["matchLabels"])
    for each in selector["matchExpressions"].elements():
        yield from _check_values(each, ("In", "NotIn", "Exists", "DoesNotExist"))
        problem = qualified_name(each["key"].text)
        if problem is not None:
            yield each["key"].finding("bad-name", f"{each['key'].text!r} {problem}")
        for value in each["values"].elements():
            if label_value(value.text) is not None:
                yield value.finding("bad-name", f"{value.text!r} {label_value(value.text)}")


def _check_label_keys(keys: DocumentField, selector: DocumentField, *, is_merged: bool) -> Found:
    if keys.elements() and not selector.is_given:
        yield keys.finding("required-field", "it needs a labelSelector beside it")
        return
    labels = [name for name, _ in selector["matchLabels"].members()]
    seen = set(labels)
    for expression in selector["matchExpressions"].elements():
        key = expression["key"].text
        if is_merged and key in keys.words and key in seen:
            yield expression["key"].finding("several-sources", f"{key!r} stands in matchLabelKeys and labelSelector")
        seen.add(key)
    for each in keys.elements():
        if qualified_name(each.text) is not None:
            yield each.finding("bad-name", f"{each.text!r} {qualified_name(each.text)}")


def _check_spreading(spec: DocumentField) -> Found:
    seen: set[tuple[str, str]] = set()
    for constraint in spec["topologySpreadConstraints"].elements():
        for name in ("maxSkew", "whenUnsatisfiable"):
            if not constraint[name].is_given:
                yield constraint[name].finding("required-field", "a constraint needs it")
        key, action = constraint["topologyKey"], constraint["whenUnsatisfiable"]
        if not key.text:
            yield key.finding("required-field", "a constraint needs it")
        if (key.text, action.text) in seen:
            yield key.finding("duplicate-name", f"another constraint is for {key.text!r} as well")
        seen.add((key.text, action.text))
        if constraint["minDomains"].is_given and action.text != "DoNotSchedule":
            yield constraint["minDomains"].finding("forbidden-field", "it needs whenUnsatisfiable: DoNotSchedule")
        yield from _check_label_keys(constraint["matchLabelKeys"], constraint["labelSelector"], is_merged=True)
        yield from check_selector(constraint["labelSelector"])


def _check_dns(spec: DocumentField) -> Found:
    config = spec["dnsConfig"]
    servers, searches = config["nameservers"], config["searches"]
    if spec["dnsPolicy"].text == "None" and not servers.elements():
        yield servers.finding("required-field", "with dnsPolicy None there must be a nameserver")
    if len(servers.elements()) > _MOST_NAMESERVERS:
        yield servers.finding("out-of-range", f"there are more than {_MOST_NAMESERVERS}")
    if len(searches.elements()) > _MOST_SEARCHES or len(" ".join(searches.words)) > _LONGEST_SEARCH:
        yield searches.finding("out-of-range", f"more than {_MOST_SEARCHES} domains, or {_LONGEST_SEARCH} characters")
    for alias in spec["hostAliases"].elements():
        if not alias["ip"].is_given:
            yield alias["ip"].finding("required-field", "an alias needs an address")
    for option in config["options"].elements():
        if not option["name"].text:
            yield option["name"].finding("required-field", "an option needs a name")
