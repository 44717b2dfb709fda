"""Engines by name."""

from __future__ import annotations

from evalkit.runs.engine import Engine, EngineError


def find_engine(name: str, workers: int) -> Engine:
    """An engine by name: ``local``, ``dask`` (a cluster of its own), ``dask://HOST:PORT``.

    ``workers`` is the number of processes where the engine starts them. EngineError names what is allowed.
    """
    if name == "local":
        from evalkit.runs.local_pool import Local

        return Local(workers)
    scheme, _, address = name.partition("://")
    if scheme == "dask" and (name == "dask" or _is_address(address)):
        from evalkit.runs.cluster import Cluster

        return Cluster(address or None, workers)
    raise EngineError(f"--engine {name!r}: allowed are local, dask, dask://HOST:PORT")


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65536
