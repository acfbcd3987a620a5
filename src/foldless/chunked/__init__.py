"""Larger than memory: fits, leave-one-out, k-fold cross-validation and alphas over chunks of rows.

    from foldless import LSSVC, chunked
    data = chunked.parquet("folder", target="label")
    result = chunked.cross_validate(LSSVC(kernel="linear"), data, cv=10, alphas=[0.1, 1, 10])

Sources of chunks are :func:`arrays` (NumPy arrays and memory maps), :func:`parquet`, :func:`csv`, :func:`numbered` and
:func:`iterator` (functions), and :func:`dask` (its arrays and dataframes). ``client=`` works on them on a cluster.
"""

from foldless.chunked.files import csv, parquet
from foldless.chunked.partitions import dask
from foldless.chunked.result import ChunkedResult
from foldless.chunked.rows import Chunk, ChunkError
from foldless.chunked.sources import Source, arrays, iterator, numbered
from foldless.chunked.validation import cross_validate

__all__ = [
    "Chunk",
    "ChunkError",
    "ChunkedResult",
    "Source",
    "arrays",
    "cross_validate",
    "csv",
    "dask",
    "iterator",
    "numbered",
    "parquet",
]
