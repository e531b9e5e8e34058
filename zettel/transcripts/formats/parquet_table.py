"""Tables of messages as Parquet files, with the columns of :mod:`~zettel.transcripts.formats.tables`.

pyarrow (``zettel-graph[parquet]``) reads them in batches of rows. Lists, structures and long texts in other columns are
the payload. Without a column for threads or channels an event has no session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.errors import BadRecord, MissingExtra
from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.records import ContentKeys, rejected

from .tables import TableColumns

name = "parquet"
local_times = True
"""Times may have no zone."""

BATCH_ROWS = 500
"""Rows that are in memory at once."""

_BUFFER_BYTES = 1 << 20  # without a buffer, whole columns of often a million rows are in memory
_MAGIC = b"PAR1"
_INDEX = "__index_level_"  # prefix of the row numbers that pandas adds as columns


def sniff(path: Path, head: bytes) -> bool:
    """Recognise the first four bytes of every Parquet file."""
    return head.startswith(_MAGIC)


def read(
    path: Path,
    zone: tzinfo = timezone.utc,
    columns: Mapping[str, str] | None = None,
    called: str | None = None,
) -> Iterator[Record]:
    """Yield the rows in order. ``columns`` maps event fields to columns with unusual names.

    ``called`` replaces the file's name. Raises ``MissingExtra`` without pyarrow, ``InvalidInput`` as ``TableColumns``,
    and ``BadRecord`` if the rest of the file cannot be read.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet files", "parquet") from error
    keys = ContentKeys()
    number = 0
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
            names = [name for name in file.schema_arrow.names if not name.startswith(_INDEX)]
            table = TableColumns(path, names, columns, called)
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                for row in _rows(batch):
                    number += 1
                    source = Source(file=str(path), position=f"row {number}")
                    if isinstance(row, dict):
                        yield table.event(row, source, zone, keys)
                    else:
                        yield rejected(source, row)
    except (pyarrow.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise BadRecord(f"{path}:row {number + 1}: the rest of the Parquet file cannot be read: {reason}") from None


def _rows(batch: Any) -> Iterator[dict[str, Any] | str]:
    """Yield the rows of a batch as Python values, or the reason if Python cannot represent a row.

    Times are truncated to microseconds, as in Python.
    """
    import pyarrow

    schema = batch.schema
    for place, field in enumerate(schema):
        if pyarrow.types.is_timestamp(field.type) and field.type.unit == "ns":
            schema = schema.set(place, field.with_type(pyarrow.timestamp("us", field.type.tz)))
    batch = batch.cast(schema, safe=False) if schema != batch.schema else batch
    try:
        yield from batch.to_pylist()
        return
    except (ValueError, OverflowError):
        pass  # because of one row: convert each row by itself
    for place in range(batch.num_rows):
        try:
            yield batch.slice(place, 1).to_pylist()[0]
        except (ValueError, OverflowError) as error:  # a time outside the calendar, a text that is not UTF-8
            yield f"the row cannot be read: {' '.join(str(error).split())}"
