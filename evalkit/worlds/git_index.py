"""Which content a git index stages, without the times and inodes it also keeps."""

from __future__ import annotations

import hashlib
import struct

_FIXED = 62
_EXTENDED = 0x4000


def index_digest(data: bytes) -> bytes:
    """The hash of an index's entries: mode, object, flags, path. Of the whole where it cannot be read.

    The layout is gitformat-index(5), versions 2 and 3.
    """
    whole = hashlib.blake2b(digest_size=16)
    try:
        signature, version, count = struct.unpack_from(">4sII", data)
        if signature != b"DIRC" or version not in (2, 3):
            raise ValueError
        at = 12
        for _ in range(count):
            (flags,) = struct.unpack_from(">H", data, at + 60)
            fixed = _FIXED + (2 if flags & _EXTENDED else 0)
            name = data[at + fixed : data.index(b"\0", at + fixed)]
            whole.update(data[at + 24 : at + 28] + data[at + 40 : at + fixed] + name + b"\0")
            at += ((fixed + len(name)) // 8 + 1) * 8
    except (ValueError, struct.error):
        return hashlib.blake2b(data, digest_size=16).digest()
    return whole.digest()
