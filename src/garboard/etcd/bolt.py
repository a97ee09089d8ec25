"""A reader of bbolt files, the format of etcd's database: one bucket, found page by page, the members, the version.

They are read from the database of a member where that cannot be asked.

Nothing in the file is trusted: it may be damaged, cut off, or written by an etcd that runs. Whatever does not fit is an
error, and a read that a commit came in between is made again.
"""

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from garboard.documents import Json
from garboard.etcd.errors import DatabaseUnreadable
from garboard.etcd.values import Member

# Below the folder of the data.
DATABASE = "member/snap/db"
_MEMBERS = b"members"
_CLUSTER, _CLUSTER_VERSION = b"cluster", b"clusterVersion"
_MAX_MEMBER_BYTES = 64 * 1024

# Reads `count` bytes at an offset, or fewer where the file ends.
ReadAt: TypeAlias = Callable[[int, int], bytes]

_MAGIC, _VERSION = 0xED0CDAED, 2
_BRANCH, _LEAF, _META = 0x01, 0x02, 0x04
_IS_BUCKET = 0x01
# Numbers are in the byte order of the machine that wrote the file, which is this one.
_PAGE = struct.Struct("=QHHI")  # id, flags, count, overflow
_META_FIELDS = struct.Struct(
    "=IIIIQQQQQQ"
)  # magic, version, page size, flags, root, sequence, freelist, end, txid, sum
_LEAF_ELEMENT = struct.Struct("=IIII")  # flags, position, size of the key, size of the value
_BRANCH_ELEMENT = struct.Struct("=IIQ")  # position, size of the key, page
_BUCKET = struct.Struct("=QQ")  # root page, sequence
_SUM_BYTES = 8

_PAGE_SIZES = tuple(1024 << shift for shift in range(15))  # those that bbolt itself looks for
# The buckets of etcd that are read here are small; a file that claims more is damaged.
_MAX_PAGES = 1024
_MAX_PAGE_BYTES = 16 * 1024 * 1024
_MAX_DEPTH = 32
_MAX_FILE_BYTES = 1 << 50
_TRIES = 5


@dataclass(frozen=True, slots=True)
class _Meta:
    """One of the two pages that say where everything is: the valid one of the later transaction counts."""

    page_size: int
    root: int
    end: int  # no page has this number or a higher one
    transaction: int


def read_bucket(read_at: ReadAt, name: bytes) -> dict[bytes, bytes] | None:
    """Return what a bucket of the file holds, or None where it has no such bucket."""
    for _ in range(_TRIES):
        meta = _current_meta(read_at)
        failure: DatabaseUnreadable | None = None
        found: dict[bytes, bytes] | None = None
        try:
            found = _Tree(read_at, meta).bucket(name)
        except DatabaseUnreadable as error:
            failure = error
        # Pages of a transaction are used again once a later one is committed: what was read by then may be torn.
        if _current_meta(read_at) == meta:
            if failure:
                raise failure
            return found
    raise DatabaseUnreadable("it changes faster than it can be read")


def _current_meta(read_at: ReadAt) -> _Meta:
    first = _meta_at(read_at, 0)
    sizes = (first.page_size,) if first else _PAGE_SIZES
    found = [meta for meta in (first, *(_meta_at(read_at, size) for size in sizes)) if meta]
    if not found:
        raise DatabaseUnreadable("neither of its two meta pages is valid")
    return max(found, key=lambda meta: meta.transaction)


def _meta_at(read_at: ReadAt, offset: int) -> _Meta | None:
    data = read_at(offset, _PAGE.size + _META_FIELDS.size)
    if len(data) < _PAGE.size + _META_FIELDS.size or not _PAGE.unpack_from(data)[1] & _META:
        return None
    content = data[_PAGE.size :]
    magic, version, page_size, _, root, _, _, end, transaction, checksum = _META_FIELDS.unpack(content)
    is_valid = (magic, version, checksum) == (_MAGIC, _VERSION, _fnv_1a(content[:-_SUM_BYTES]))
    return _Meta(page_size, root, end, transaction) if is_valid and page_size in _PAGE_SIZES else None


def _fnv_1a(data: bytes) -> int:
    """Return the 64-bit FNV-1a hash."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


@dataclass(slots=True)
class _Tree:
    """The pages below one meta page; each may be visited once, and only so many of them."""

    read_at: ReadAt
    meta: _Meta
    visited: set[int] = field(default_factory=set)

    def bucket(self, name: bytes) -> dict[bytes, bytes] | None:
        for key, value, is_bucket in self._elements(self.meta.root):
            if key == name and is_bucket:
                return {key: value for key, value, is_bucket in self._content(value) if not is_bucket}
        return None

    def _content(self, value: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
        """Yield the elements of a bucket: it has pages of its own, or its only page is within the value."""
        if len(value) < _BUCKET.size:
            raise DatabaseUnreadable("a bucket is too short")
        root, _ = _BUCKET.unpack_from(value)
        return self._elements(root) if root else _leaf_elements(value[_BUCKET.size :])

    def _elements(self, page: int, depth: int = 0) -> Iterator[tuple[bytes, bytes, bool]]:
        data = self._page(page)
        flags = _PAGE.unpack_from(data)[1]
        if flags & _LEAF:
            yield from _leaf_elements(data)
        elif flags & _BRANCH and depth < _MAX_DEPTH:
            for child in _children(data):
                yield from self._elements(child, depth + 1)
        else:
            raise DatabaseUnreadable(f"page {page} is neither a branch nor a leaf, or lies too deep")

    def _page(self, page: int) -> bytes:
        """Return a page with those that it runs over into."""
        if page >= self.meta.end or page in self.visited or len(self.visited) >= _MAX_PAGES:
            raise DatabaseUnreadable(f"page {page} is out of bounds, or leads back to itself")
        self.visited.add(page)
        size, offset = self.meta.page_size, page * self.meta.page_size
        number, _, _, overflow = _PAGE.unpack(self._read(offset, _PAGE.size))
        if number != page or page + overflow >= self.meta.end or (overflow + 1) * size > _MAX_PAGE_BYTES:
            raise DatabaseUnreadable(f"page {page} says that it is page {number}, with {overflow} more")
        return self._read(offset, (overflow + 1) * size)

    def _read(self, offset: int, count: int) -> bytes:
        data = self.read_at(offset, count) if offset < _MAX_FILE_BYTES else b""
        if len(data) < count:
            raise DatabaseUnreadable(f"it ends before byte {offset + count}")
        return data


def _leaf_elements(page: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    for start, (flags, position, key_size, value_size) in _table(page, _LEAF_ELEMENT):
        key = _part(page, start + position, key_size)
        yield key, _part(page, start + position + key_size, value_size), bool(flags & _IS_BUCKET)


def _children(page: bytes) -> Iterator[int]:
    for _, (_, _, child) in _table(page, _BRANCH_ELEMENT):
        yield child


def _table(page: bytes, element: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the elements of a page with the place of each, from which its position counts."""
    if len(page) < _PAGE.size:
        raise DatabaseUnreadable("a page is too short")
    count = _PAGE.unpack_from(page)[2]
    if _PAGE.size + count * element.size > len(page):
        raise DatabaseUnreadable(f"a page claims {count} elements, and has no room for them")
    for start in range(_PAGE.size, _PAGE.size + count * element.size, element.size):
        yield start, element.unpack_from(page, start)


def _part(page: bytes, start: int, size: int) -> bytes:
    if start + size > len(page):
        raise DatabaseUnreadable("a key or a value reaches beyond its page")
    return page[start : start + size]


def stored_members(read_at: ReadAt) -> tuple[Member, ...]:
    """Return the members as the file had them at its last commit, 100 ms ago at most while etcd runs.

    A file of no bytes is what an etcd leaves that was stopped before it had written anything, or a damaged disk: the
    caller has to look whether the member has lived.
    """
    if not read_at(0, 1):
        return ()
    bucket = read_bucket(read_at, _MEMBERS) or {}
    return tuple(_member(key, value) for key, value in bucket.items())


def stored_cluster_version(read_at: ReadAt) -> str:
    """Return the version that all members have to have at least, as of the last commit; empty if there is none yet."""
    if not read_at(0, 1):
        return ""
    return (read_bucket(read_at, _CLUSTER) or {}).get(_CLUSTER_VERSION, b"").decode("ascii", "replace")


def _member(key: bytes, value: bytes) -> Member:
    """Return a member; its key is its id in hexadecimal digits, as etcd prints it."""
    if len(value) > _MAX_MEMBER_BYTES:
        raise DatabaseUnreadable(f"the member {key!r} has {len(value)} bytes")
    try:
        document: Json = json.loads(value)
        number = int(key, 16)
    except ValueError as error:
        raise DatabaseUnreadable(f"the member {key!r} is no JSON") from error
    if not isinstance(document, dict) or document.get("id") != number:
        raise DatabaseUnreadable(f"the member {key!r} has another id")
    return Member.read({**document, "ID": number})
