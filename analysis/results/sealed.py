"""Tables on disk, read back only as they were written.

Parquet's page checksums cover the pages and not what describes them, so a file also carries a seal: the SHA-256 of all
its other bytes, between the pages and the footer, where Parquet readers do not look. Whichever bit flips, reading is an
error with the file's name, never another number.
"""

import hashlib
from io import BytesIO
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from quorisk.kernels.errors import ResultError

_SEAL = b"sha256 of the rest: "
_SEAL_BYTES = len(_SEAL) + hashlib.sha256().digest_size
_END_BYTES = 8
"""A Parquet file ends with the footer's length and four letters."""


def write_sealed(table: pa.Table, file: Path | IO[bytes]) -> None:
    """Writes a table as sealed Parquet, the same bytes for the same values. Raises OSError."""
    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    whole = sealed(buffer.getvalue())
    if isinstance(file, Path):
        file.write_bytes(whole)
    else:
        file.write(whole)


def sealed(parquet: bytes) -> bytes:
    """Returns a Parquet file with a seal."""
    footer = _footer_at(parquet)
    return parquet[:footer] + _SEAL + hashlib.sha256(parquet).digest() + parquet[footer:]


def read_sealed(path: Path, schema: pa.Schema) -> pa.Table:
    """Returns a table that `write_sealed` wrote, of `schema`. Raises ResultError if the file is another or changed."""
    try:
        if path.exists() and not path.is_file():  # such as a pipe, for which reading would wait
            raise ResultError(f"{path}: not a file")
        whole = path.read_bytes()
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from None
    footer = _footer_at(whole)
    seal, rest = whole[footer - _SEAL_BYTES : footer], whole[: footer - _SEAL_BYTES] + whole[footer:]
    if footer < _SEAL_BYTES or seal != _SEAL + hashlib.sha256(rest).digest():
        raise ResultError(f"{path}: damaged, or not written by this version of Quorisk")
    try:
        table = pq.ParquetFile(pa.BufferReader(whole), page_checksum_verification=True).read()
    except (pa.ArrowException, OSError, ValueError) as error:  # Arrow's own OSError: of what it cannot decode
        raise ResultError(f"{path}: not a readable Parquet file: {' '.join(str(error).split())}") from None
    if table.schema != schema:
        raise ResultError(f"{path}: not a table of Quorisk results, or one from another version")
    return table.cast(schema)


def _footer_at(file: bytes) -> int:
    """Place at which the footer of a Parquet file begins; arbitrary if the file is no Parquet file."""
    return len(file) - _END_BYTES - int.from_bytes(file[-_END_BYTES : -_END_BYTES + 4], "little")
