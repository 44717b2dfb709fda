"""A wall clock that jumps under a program while it runs; the clocks that never go back are left alone."""

from __future__ import annotations

import mmap
import os
import random
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DAY = 86_400
JUMPS = (0, 70, -70, 700, 3_600, -3_600, DAY, -DAY, 400 * DAY, -400 * DAY)

#: What a program's C library is asked for the time by; seconds are added that stand in a file.
_SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile double *added;
__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("JUMPING_CLOCK");
    int handle = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    if (handle < 0) return;
    void *at = mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, handle, 0);
    if (at != MAP_FAILED) added = at;
    close(handle);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int code = syscall(SYS_clock_gettime, clock, now);
    if (code == 0 && added && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += (time_t)*added;
    return code;
}
time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *told, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


def can_jump() -> bool:
    """Whether there is a compiler to make such a clock with."""
    return shutil.which("cc") is not None and os.uname().sysname == "Linux"


@contextmanager
def jumping(
    place: Path, ready: Callable[[], bool] = lambda: True, every: float = 0.03
) -> Iterator[dict[str, str]]:
    """The environment of programs whose wall clock jumps every so many seconds, once all is ready."""
    (place / "clock.c").write_text(_SOURCE)
    library, file = place / "clock.so", place / "clock"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(place / "clock.c")], check=True)
    file.write_bytes(struct.pack("d", 0.0))
    over, choices = threading.Event(), random.Random(1)
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 8) as added:

        def jump() -> None:
            while not over.wait(every) and not ready():
                pass
            while not over.wait(every):
                added[:] = struct.pack("d", choices.choice(JUMPS))

        thread = threading.Thread(target=jump)
        thread.start()
        try:
            yield {**os.environ, "LD_PRELOAD": str(library), "JUMPING_CLOCK": str(file)}
        finally:
            over.set()
            thread.join()
