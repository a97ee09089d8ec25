"""Texts and documents for people, without the passwords of URLs: a proxy's stands in the variables of static pods."""

import re

from garboard.documents.json_value import Json

HIDDEN = "<hidden>"
# User and password of a URL, also with a slash or an @ that is not escaped. An image with a digest has none.
URL_USERINFO = r"(?<=://)[^\s/@:\"']*:(?:(?!://)[^\s\"'])*(?=@(?!sha256:))"
_USERINFO = re.compile(URL_USERINFO)


def without_passwords(text: str) -> str:
    """Return the text without users and passwords of URLs."""
    return _USERINFO.sub(HIDDEN, text)


def document_without_passwords(value: Json) -> Json:
    """Return the document with the values of its texts without users and passwords of URLs."""
    if isinstance(value, dict):
        return {key: document_without_passwords(each) for key, each in value.items()}
    if isinstance(value, list):
        return [document_without_passwords(each) for each in value]
    return without_passwords(value) if isinstance(value, str) else value
