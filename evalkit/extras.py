"""What a plain install leaves out, and how it is brought: one line, wherever it is missing."""

from __future__ import annotations

from importlib.util import find_spec

#: The name under which the package is installed.
DISTRIBUTION = "evalkit-endings"
#: The extra that brings a module.
EXTRAS = {
    "anthropic": "live",
    "cloudpickle": "dask",
    "distributed": "dask",
    "h11": "harness",
    "httpx2": "live",
    "hypothesis": "falsify",
    "matplotlib": "report",
    "mcp": "harness",
    "numpy": "report",
    "openai": "live",
    "opentelemetry": "otel",
    "pandas": "report",
    "psycopg": "postgres",
    "uv": "harness",
    "vcr": "live",
}


class MissingExtra(ImportError):
    """A module that is not installed; the message says what needs it and how it is brought."""


def install(module: str) -> str:
    """The command that brings a module."""
    extra = EXTRAS.get(module)
    return f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install {module}"


def missing(what: str, module: str) -> MissingExtra:
    """The error for a module that is not there."""
    return MissingExtra(f"{what} needs {module}, which is not installed: {install(module)}", name=module)


def installed(module: str) -> bool:
    """Whether a module is there; it is not imported."""
    return find_spec(module) is not None


def need(what: str, *modules: str) -> None:
    """MissingExtra for the first of the modules that is not installed."""
    for module in modules:
        if not installed(module):
            raise missing(what, module)
