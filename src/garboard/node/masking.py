"""Documents and texts without their secrets, for readers who have no access to the machine.

A document is masked by its structure: values of environment variables and headers, and annotations of others, may hold
anything. In a text, what looks like a secret is replaced, and what a secret's name stands before.
"""

import re

from garboard.documents import HIDDEN, URL_USERINFO, Json, read_yaml, write_yaml
from garboard.errors import GarboardError

# Lists of names and values, as in Pods, kubeadm's configuration and the container runtime's.
_VALUE_LISTS = frozenset(("env", "envs", "extraEnvs", "httpHeaders"))
# Annotations that kubeadm and the kubelet write.
_OWN_ANNOTATIONS = ("kubeadm.kubernetes.io/", "kubeadm.alpha.kubernetes.io/", "kubernetes.io/config.")
# What a name ends with that stands before a secret; a file or a lifetime of one is none.
_SECRET_NAME = (
    r"(?:[\w.-]*(?:token|password|passwd|passphrase|secret|credentials?|(?:api|access|private|secret|certificate|encryption)"
    r"[_-]?key|key[_-]?data)|(?:[\w.-]*[_.-])?(?:pass|pwd)|tls\.key|authorization)"
)
_SECRET_KEY = re.compile(rf"(?i){_SECRET_NAME}|auth")  # the latter as a registry's user and password are called
# Quotes may be escaped, in JSON that is itself a text of JSON.
_QUOTE = r"\\*[\"']"
_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|LS0tLS1CRUdJTi[\w+/=-]*"  # -----BEGIN, in base64
    r"|(?<![a-z0-9.])[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9.])"  # a bootstrap token
    r"|\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]*"  # a JSON web token
    rf"|{URL_USERINFO}",
    re.DOTALL,
)
# A word, or what is between quotes; what comes before it is the first group.
_VALUE = (
    r"(?:(?P<quote>\\*[\"'])(?!<hidden>).*?(?<!\\)(?P=quote)"
    r"|(?!<hidden>|(?:bearer|basic)[ \t]+<hidden>|true\b|false\b|null\b|nil\b)[^\s\"'\\,{}\[\]|>][^\s\"'\\,}\]]*)"
)
_NAMED = (
    # A flag and what follows it, also as the next word of a list in JSON.
    re.compile(rf"(?i)(--{_SECRET_NAME}(?:=|[ \t]+|{_QUOTE},\s*)){_VALUE}"),
    # A field of YAML or JSON, or a header.
    re.compile(rf"(?i)(\b{_SECRET_NAME}(?:{_QUOTE})?[ \t]*[:=][ \t]*(?:(?:bearer|basic)[ \t]+)?){_VALUE}"),
    re.compile(rf"(?i)(\b(?:bearer|basic)[ \t]+)(?!(?:auth|token)){_VALUE}"),
    re.compile(rf"({_QUOTE}auth{_QUOTE}\s*:\s*){_VALUE}"),
    # A variable or a header in JSON; the container runtime calls the name of a variable its key.
    re.compile(
        rf"({_QUOTE}(?:name|key){_QUOTE}\s*:\s*{_QUOTE}[^\"'\\]*{_QUOTE}\s*,\s*{_QUOTE}value{_QUOTE}\s*:\s*){_VALUE}",
    ),
    re.compile(rf"({_QUOTE}value{_QUOTE}\s*:\s*){_VALUE}(?=\s*,\s*{_QUOTE}(?:name|key){_QUOTE}\s*:)"),
    # … in YAML, and in the text form of protocol buffers.
    re.compile(
        rf"(\b(?:name|key):\s*(?:{_QUOTE}[^\"'\\]*{_QUOTE}|[^\s,{{}}\"'\\]+)\s*,?\s*\bvalue:[ \t]*)"
        r"(?:(?P<quote>\\*[\"'])(?!<hidden>).*?(?<!\\)(?P=quote)|(?!<hidden>)[^\s,{}\[\]\"'\\][^,}\]\n]*)"
    ),
    # How Go prints a variable or a header as a value, and with its type, as in the kubelet's log.
    re.compile(r"(\{Name:\S* Value:)(?P<quote>)(?:(?:(?!\{Name:).)*?(?= ValueFrom:)|[^}]*)", re.DOTALL),
    re.compile(r"((?:EnvVar|HTTPHeader)\{Name:[^,{}]*,Value:)(?P<quote>).*?(?=,ValueFrom:|,?\})", re.DOTALL),
)


# A list of NAME=value, and what it begins with.
_VARIABLES = re.compile(rf"(?i)\benvs?(?:{_QUOTE})?\s*[:=]\s*\[")
_VARIABLE = re.compile(
    r"(?P<before>[\s,]*(?:(?P<quote>\\*[\"']))?[A-Za-z_][\w.-]*=)(?(quote).*?(?<!\\)(?P=quote)|[^\s,\]]*)", re.DOTALL
)


def masked(text: str) -> str:
    """Return the text with everything replaced that looks like a secret."""
    text = _SECRETS.sub(HIDDEN, text)
    for pattern in _NAMED:
        text = pattern.sub(_hide_value, text)
    return _without_variables(text)


def _without_variables(text: str) -> str:
    """Return the text with the values of all lists of NAME=value hidden."""
    parts, end = list[str](), 0
    for found in _VARIABLES.finditer(text):
        if found.end() < end:
            continue
        parts.append(text[end : found.end()])
        end = found.end()
        while each := _VARIABLE.match(text, end):
            parts.append(f"{each['before']}{HIDDEN}{each['quote'] or ''}")
            end = each.end()
    return "".join((*parts, text[end:]))


def _hide_value(found: re.Match[str]) -> str:
    quote = found["quote"] or ""
    return f"{found[1]}{quote}{HIDDEN}{quote}"


def masked_document(value: Json) -> Json:
    """Return the document with everything replaced that may hold a secret, documents in its texts included."""
    if isinstance(value, dict):
        path = value.get("path")
        if isinstance(value.get("op"), str) and isinstance(path, str) and "value" in value:
            return {**value, "value": _masked_at(path.split("/")[1:], value["value"])}
        return {key: _masked_member(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [masked_document(each) for each in value]
    return masked_text(value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """Return the text of a file; if it is a document, masked as one."""
    try:
        found = read_yaml(text, source="") if "\n" in text else None
    except GarboardError as error:
        # What the reader cannot find its way in may hold a value anywhere.
        return f"{HIDDEN}: it is no document: {masked(error.message)}\n" if _looks_like_document(text) else masked(text)
    return masked(write_yaml(masked_document(found)) if isinstance(found, dict | list) else text)


def _looks_like_document(text: str) -> bool:
    return re.search(r"(?m)^\s*(?:- )?[\w\"'.-]+:(?:\s|$)|^\s*[{\[]", text) is not None


def _masked_member(key: str, value: Json) -> Json:
    if key in _VALUE_LISTS and isinstance(value, list):
        return [_without_value(each) for each in value]
    if key == "annotations" and isinstance(value, dict):
        return {name: each if name.startswith(_OWN_ANNOTATIONS) else HIDDEN for name, each in value.items()}
    if isinstance(value, str | list) and _SECRET_KEY.fullmatch(key):
        return HIDDEN if isinstance(value, str) else [HIDDEN for _ in value]
    return masked_document(value)


def _masked_at(names: list[str], value: Json) -> Json:
    """Return the value of an operation of a JSON patch, masked as what its path leads to."""
    *_, list_, above, last = ("", "", "", *names)
    if list_ in _VALUE_LISTS and last == "value":
        return HIDDEN
    if above in _VALUE_LISTS:
        return _without_value(value)
    if above == "annotations":
        return value if last.replace("~1", "/").startswith(_OWN_ANNOTATIONS) else HIDDEN
    return _masked_member(last, value)


def _without_value(item: Json) -> Json:
    if isinstance(item, dict):
        return {key: HIDDEN if key == "value" else masked_document(each) for key, each in item.items()}
    return HIDDEN  # NAME=value
