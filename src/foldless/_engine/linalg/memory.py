"""Memory: how much is free."""

import os
import time
from functools import lru_cache
from pathlib import Path

GIB = 2.0**30
LASTS = 0.5  # seconds for which what is free is taken to stay so
# Files of control groups, by version: the limit, what is used, and the cached files among it that can be dropped.
VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
VERSION_2 = ("memory.max", "memory.current", "inactive_file")


def available_memory():
    """Bytes that can be allocated now, or None where the system does not tell."""
    return _free(int(time.monotonic() / LASTS))


@lru_cache(maxsize=1)
def _free(_moment):
    """The same, read once in a moment: many small fits would spend a third of their time on reading."""
    try:
        return min([_free_on_machine(), *_free_in_groups()])
    except (OSError, ValueError, AttributeError):
        return None


def _free_on_machine():
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        amounts = dict(line.split(":") for line in meminfo.read_text().splitlines())
        if "MemAvailable" in amounts:
            return int(amounts["MemAvailable"].split()[0]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _free_in_groups(root="/sys/fs/cgroup", groups="/proc/self/cgroup"):
    """What is left in each control group of this process that has a limit: containers and cluster jobs have one."""
    if not Path(groups).exists():
        return
    for line in Path(groups).read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, (limit, used, unused) = (Path(root) / "memory", VERSION_1) if controllers else (Path(root), VERSION_2)
        folder = top / path.lstrip("/")
        for group in [folder, *folder.parents]:
            text = (group / limit).read_text().strip() if (group / limit).exists() else "max"
            if text != "max":
                stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
                needed = int((group / used).read_text()) - int(stat.get(unused, 0))
                yield max(0, int(text) - needed)


def is_free(n_bytes):
    """Whether so many bytes can be allocated, as far as the system tells."""
    free = available_memory()
    return free is None or n_bytes <= free
