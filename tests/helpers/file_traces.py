"""What is left of a text in the files below a folder, in any form that backread may give it.

A database is searched as bytes, and so is a Parquet file, whose columns are also read back, since
they are compressed. So are the bodies in a database: each zstd frame is unpacked, in free blocks
too.
"""

import contextlib
import json
import os
from pathlib import Path

import pyarrow
import pyarrow.parquet

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""With what a frame begins, RFC 8878, section 3.1.1."""


def forms(text: str) -> list[bytes]:
    """A text as UTF-8, as UTF-16, and as JSON with escapes."""
    return [text.encode(), text.encode("utf-16-le"), json.dumps(text)[1:-1].encode()]


def files_below(folder: Path) -> list[Path]:
    """All files below a folder, hidden ones too."""
    return sorted(
        Path(directory, name) for directory, _, names in os.walk(folder) for name in names
    )


def content(path: Path) -> bytes:
    """The bytes of a file; of Parquet also the values of all columns."""
    raw = path.read_bytes()
    if path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
        return raw + str(table.to_pylist()).encode() + str(table.schema.metadata).encode()
    return raw + unpacked(raw)


def unpacked(raw: bytes) -> bytes:
    """What the zstd frames in these bytes hold, as far as each can be read."""
    found = bytearray()
    at = raw.find(ZSTD_MAGIC)
    while at >= 0:
        frame = raw[at : frame_end(raw, at)]
        try:
            found += pyarrow.CompressedInputStream(pyarrow.BufferReader(frame), "zstd").read()
        except OSError:
            # Its end was written over; an error takes the rest of a longer read with it.
            stream = pyarrow.CompressedInputStream(pyarrow.BufferReader(frame), "zstd")
            with contextlib.suppress(OSError):
                while byte := stream.read(1):
                    found += byte
        at = raw.find(ZSTD_MAGIC, at + 1)
    return bytes(found)


def frame_end(raw: bytes, at: int) -> int:
    """Where a zstd frame ends, by the sizes of its blocks (RFC 8878, section 3.1.1)."""
    described = raw[at + 4] if at + 4 < len(raw) else 0
    single = described >> 5 & 1
    content_size = (single, 2, 4, 8)[described >> 6]
    at += 5 + (not single) + (0, 1, 2, 4)[described & 3] + content_size
    is_last = False
    while not is_last and at < len(raw):
        header = int.from_bytes(raw[at : at + 3], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == 1 else size)
    return at + 4 * (described >> 2 & 1)


def traces(folder: Path, *texts: str) -> list[str]:
    """The files that have one of the texts in any form, with the text."""
    found = []
    for path in files_below(folder):
        held = content(path)
        found += [
            f"{path.relative_to(folder)}: {text}"
            for text in texts
            if any(form in held for form in forms(text))
        ]
    return found


def state(folder: Path) -> dict[str, bytes]:
    """The files below a folder and their bytes, but for the lock, which names its process."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files_below(folder)
        if path.name != "sync.lock"
    }
