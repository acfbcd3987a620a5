"""Archives that a stranger may have made: sizes, depths and counts are checked before anything of them is parsed.

What an archive may unpack to, and how many values its JSON may hold, grows with the size of the file, so that a small
file can not ask for much memory or time.
"""

import io
import json
import math
import re
import struct
import zipfile

import numpy as np

FREE, RATIO = 2**24, 300  # bytes that every file may unpack to, and times its size that a larger one may
MOST_BYTES = 2**32
FREE_VALUES, VALUES_A_BYTE = 10**5, 4  # of JSON, likewise
FREE_MEMBERS, BYTES_A_MEMBER = 1000, 20
DEEPEST = 60  # lists and objects inside each other: a model has some 35
TEXT = re.compile(
    rb'"(?:[^"\\]|\\.?)*(?:"|\Z)', flags=re.S
)  # one that is never closed ends with the JSON: no second look
NOT_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))
END = struct.Struct("<4s4H2LH")  # the end of an archive: how many members there are
BEGIN, MARK, MARK_64, LENGTH_64 = b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x07", 20
LARGE = 2**31 - 1  # from which archives have a second record at their end
NUMBERS_AND_TEXTS = "biufSU"  # kinds of arrays


class ArchiveError(ValueError):
    """What is wrong with an archive, in words that follow "it"."""


def most_bytes(packed):
    """Bytes that a file of ``packed`` bytes may unpack to."""
    return min(MOST_BYTES, max(FREE, RATIO * packed))


def unpacked(content, packed, names=None):
    """{name: bytes} of an archive, itself bytes or an open file, from a file of ``packed`` bytes.

    ``names`` are those that it must have; None: any number of plain names.
    """
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    _check_end(file, FREE_MEMBERS + packed // BYTES_A_MEMBER if names is None else len(names))
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        found = [each.filename for each in members]
        if len(set(found)) < len(found):
            raise ArchiveError("holds two members of one name")
        if names is not None and set(found) != names:
            raise ArchiveError("is no model of foldless")
        if strange := [each for each in found if re.fullmatch(r"[\w-]+\.\w+", each) is None]:
            raise ArchiveError(f"holds a member of the strange name {strange[0][:40]!r}")
        if any(each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for each in members):
            raise ArchiveError("is packed in another way than models are")
        size = sum(each.file_size for each in members)
        if size > most_bytes(packed):
            raise ArchiveError(f"would unpack to {size:,} bytes, too many for a file of its size")
        return {each.filename: archive.read(each) for each in members}


def _check_end(file, most):
    """Refuse an archive of too many members: their list is read as a whole when the archive is opened."""
    file.seek(0)
    begin = file.read(len(BEGIN))
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - END.size - LENGTH_64))
    tail = file.read()
    if len(tail) < END.size:
        raise zipfile.BadZipFile("too short")
    mark, disk, first, here, members, *_, comment = END.unpack(tail[-END.size :])
    if begin != BEGIN or mark != MARK or comment or disk or first or here != members:
        raise zipfile.BadZipFile("another end")
    if members > most:
        raise ArchiveError(f"holds {members:,} members")
    if tail.startswith(MARK_64) and size < LARGE:
        raise ArchiveError("has the end of a far larger archive")


def parsed(content, packed):
    """What JSON in UTF-8 says; refused are deep ones, very many values, names that occur twice and NaN."""
    text = content.decode()
    structure = TEXT.sub(b"", content).translate(None, NOT_STRUCTURE)
    if len(structure) > FREE_VALUES + VALUES_A_BYTE * packed:
        raise ArchiveError("describes too much for a file of its size")
    marks = np.frombuffer(structure, dtype=np.uint8)
    steps = np.isin(marks, list(b"[{")).astype(int) - np.isin(marks, list(b"]}"))
    if np.cumsum(steps).max(initial=0) > DEEPEST:
        raise ArchiveError(f"describes objects that are nested more than {DEEPEST} deep")
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)


def _unique(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ArchiveError("describes something twice")
    return found


def _no_number(name):
    raise ArchiveError(f"holds {name} where numbers are")


def check_arrays(parts, packed):
    """Refuse arrays (.npy, .npz) that are other than their headers say, or hold objects."""
    left = most_bytes(packed)
    for name, content in parts.items():
        arrays = {}
        if name.endswith(".npz"):
            arrays = unpacked(content, packed)
        elif name.endswith(".npy"):
            arrays = {name: content}
        left -= sum(map(len, arrays.values()))
        if left < 0:
            raise ArchiveError("would unpack to too many bytes for a file of its size")
        for each in arrays.values():
            _check_array(each)


def _check_array(content):
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ArchiveError(f"holds an array of version {version}")
    shape, _, dtype = read(file)
    if dtype.kind not in NUMBERS_AND_TEXTS:
        raise ArchiveError(f"holds an array of type {str(dtype)[:40]}")
    size = math.prod(shape)
    if (
        min(shape, default=0) < 0
        or (size and not dtype.itemsize)
        or size * dtype.itemsize != len(content) - file.tell()
    ):
        raise ArchiveError(f"holds an array that is no {' x '.join(map(str, shape))[:40]}")


def check_description(described, files):
    """Refuse descriptions of skops whose objects are larger than the text that describes them.

    A node that has the id of an earlier one stands for that one, and a node can name any file: with a few of them a
    short text would describe millions of objects, or read a large array many times.
    """
    readers: dict = {}
    _check_node(described, {}, readers)
    if absent := sorted(readers.keys() - files):
        raise ArchiveError(f"lacks its member {absent[0][:40]!r}")


def _check_node(node, sizes, readers):
    """The number of nodes in a part of a description."""
    if isinstance(node, list):
        return sum(_check_node(each, sizes, readers) for each in node)
    if not isinstance(node, dict):
        return 0
    size = 1 + sum(_check_node(each, sizes, readers) for each in node.values())
    name, text = node.get("__id__", f"none, {id(node)}"), node.get("content")
    if sizes.setdefault(name, size) != size:
        raise ArchiveError("describes different objects as one")
    if "file" in node and readers.setdefault(node["file"], name) != name:
        raise ArchiveError("reads an array more than once")
    if isinstance(text, str) and text.lstrip()[:1] in ("[", "{"):
        raise ArchiveError("describes objects inside of a text")
    return size
