"""Pickles as Python 2 wrote them, opcode by opcode: what the citation files hold, and what a forger might write."""

from __future__ import annotations

import struct

import numpy as np
import scipy.sparse as sp


def string(content: bytes) -> bytes:
    return b"T" + struct.pack("<i", len(content)) + content


def numbers(values) -> bytes:
    return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"


def array(values: np.ndarray, kind: bytes | None = None) -> bytes:
    kind = kind or values.dtype.str[1:].encode()
    empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + numbers([0]) + string(b"b") + b"tR"
    dtype = b"cnumpy\ndtype\n(" + string(kind) + b"K\x00K\x01tR(K\x03" + string(b"<") + b"NNNJ\xff\xff\xff\xff"
    dtype += b"J\xff\xff\xff\xffK\x00tb"
    return empty + b"(K\x01" + numbers(values.shape) + dtype + b"I00\n" + string(values.tobytes()) + b"tb"


def matrix(values: sp.csr_matrix) -> bytes:
    parts = {
        b"data": values.data,
        b"indices": values.indices.astype(np.int32),
        b"indptr": values.indptr.astype(np.int32),
    }
    state = b"}(" + b"".join(string(name) + array(part) for name, part in parts.items())
    state += string(b"_shape") + numbers(values.shape) + b"u"
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81" + state + b"b"


def dumps(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."
