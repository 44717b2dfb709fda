"""A PostgreSQL server of the tests' own: in a temporary folder, on a socket, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

#: Whom the server runs as where the tests run as root, which PostgreSQL refuses to be.
SERVER_USER = "nobody"


def server_programs() -> Path | None:
    """The folder of ``initdb`` and ``postgres``; None where they are not installed."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


@contextmanager
def postgres_server(programs: Path) -> Iterator[str]:
    """A running server; the URL of its database."""
    with tempfile.TemporaryDirectory(prefix="evalkit-postgres-") as folder:
        root = os.geteuid() == 0
        user = pwd.getpwnam(SERVER_USER) if root else None
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = f"{folder}/data"

        def run(program: str, *arguments: str) -> None:
            subprocess.run(
                [str(programs / program), "-D", data, *arguments],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                user=user.pw_uid if user is not None else None,
                group=user.pw_gid if user is not None else None,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            )

        run("initdb", "--auth=trust", "--username=evalkit", "--encoding=UTF8", "--no-sync")
        options = f"-k {folder} -h '' -c fsync=off -c full_page_writes=off"
        run("pg_ctl", "start", "-w", "-o", options, "-l", f"{folder}/log")
        try:
            yield f"postgresql://evalkit@/postgres?host={quote(folder, safe='')}"
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate")
