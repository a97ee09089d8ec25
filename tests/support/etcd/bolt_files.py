"""bbolt files made by hand: two meta pages, and pages that a test can lay out as it likes."""

import struct
from collections.abc import Mapping

from garboard.etcd.bolt import ReadAt

PAGE_SIZE = 4096
BRANCH, LEAF, META = 1, 2, 4


def checksum(data: bytes) -> int:
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def meta_page(number: int, *, root: int, end: int, transaction: int, page_size: int = PAGE_SIZE) -> bytes:
    fields = struct.pack("=IIIIQQQQQ", 0xED0CDAED, 2, page_size, 0, root, 0, 2, end, transaction)
    content = struct.pack("=QHHI", number, META, 0, 0) + fields + struct.pack("=Q", checksum(fields))
    return content.ljust(page_size, b"\0")


def leaf(number: int, items: Mapping[bytes, bytes], *, is_bucket: bool = False, overflow: int = 0) -> bytes:
    """Return a leaf page, as long as its content unless the caller pads it."""
    table, content = b"", b""
    for index, (key, value) in enumerate(items.items()):
        position = (len(items) - index) * 16 + len(content)
        table += struct.pack("=IIII", int(is_bucket), position, len(key), len(value))
        content += key + value
    return struct.pack("=QHHI", number, LEAF, len(items), overflow) + table + content


def branch(number: int, children: Mapping[bytes, int]) -> bytes:
    table, content = b"", b""
    for index, (key, child) in enumerate(children.items()):
        table += struct.pack("=IIQ", (len(children) - index) * 16 + len(content), len(key), child)
        content += key
    return struct.pack("=QHHI", number, BRANCH, len(children), 0) + table + content


def bucket(root: int) -> bytes:
    return struct.pack("=QQ", root, 0)


def inline(items: Mapping[bytes, bytes]) -> bytes:
    """Return a bucket whose only page is within its value."""
    return bucket(0) + leaf(0, items)


def bolt_file(*pages: bytes, root: int = 2, page_size: int = PAGE_SIZE) -> bytes:
    """Return a file of these pages, from page 2 on; those that are too long run over into the next ones."""
    content = b"".join(page + b"\0" * (-len(page) % page_size) for page in pages)
    end = 2 + len(content) // page_size
    metas = (meta_page(number, root=root, end=end, transaction=7 + number, page_size=page_size) for number in (0, 1))
    return b"".join(metas) + content


def reading(data: bytes) -> ReadAt:
    return lambda offset, count: data[offset : offset + count]
