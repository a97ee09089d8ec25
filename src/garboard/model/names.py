"""Names, addresses and references as Kubernetes checks them; each check returns what is wrong, in its words."""

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_MAX_SUBDOMAIN = 253

_PATH_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_DOMAIN_COMPONENT = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_COMPONENT}(?:\.{_DOMAIN_COMPONENT})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_IMAGE_NAME = re.compile(rf"(?:{_DOMAIN}/)?{_PATH_COMPONENT}(?:/{_PATH_COMPONENT})*", re.ASCII)

# Of these characters neither a shell nor a unit file of systemd makes anything else, but for a `=` at the start, which
# zsh replaces by the path of a program.
_PLAIN_WORD = re.compile(r"(?!=)[A-Za-z0-9_./=:,-]+")
_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_TOKEN_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


def subdomain_problems(text: str) -> list[str]:
    """Say why `text` is no lower-case RFC 1123 subdomain; nothing if it is one."""
    problems = _length_problems(text, "must be no more than 253 characters")
    if not re.fullmatch(_SUBDOMAIN, text):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            f"start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{_SUBDOMAIN}')"
        )
    return problems


def wildcard_problems(text: str) -> list[str]:
    """Say why `text` is no `*.` followed by a subdomain; nothing if it is one."""
    problems = _length_problems(text, "must be no more than 253 characters")
    if not re.fullmatch(_WILDCARD, text):
        problems.append(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
            f"(e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
        )
    return problems


def _length_problems(text: str, message: str) -> list[str]:
    return [message] if len(text.encode()) > _MAX_SUBDOMAIN else []


def is_image_repository(text: str) -> bool:
    return _IMAGE_NAME.fullmatch(f"{text}/name") is not None


def is_bootstrap_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def is_token_group(text: str) -> bool:
    return _TOKEN_GROUP.fullmatch(text) is not None


def is_plain_word(text: str) -> bool:
    """Say whether a word of a command line means itself wherever it is written."""
    return _PLAIN_WORD.fullmatch(text) is not None
