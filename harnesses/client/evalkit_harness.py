"""What a Python program needs to be a harness under test: nothing but the standard library.

from evalkit_harness import serve

def run(job):
    ...                      # job.prompt, job.tools, job.call(name, arguments)
    return "end_turn"        # the native signal; or {"ending": "done", "report": {...}}

serve(run)
"""

import importlib
import inspect
import json
import os
import re
import sys
import time
import traceback
import urllib.error
import urllib.request


class Result(str):
    """The text that a tool answered; ``error`` says whether it failed."""

    error = False


class Job:
    """One task: ``prompt``, ``model``, ``tools``, limits, and the channels agreed for saying "done"."""

    def __init__(self, told):
        self.prompt = told["EVALKIT_PROMPT"]
        self.model = told["EVALKIT_MODEL"]
        self.variant = told.get("EVALKIT_VARIANT", "")
        self.anthropic_url = told["ANTHROPIC_BASE_URL"]
        self.openai_url = told["OPENAI_BASE_URL"]
        self.tools_url = told["EVALKIT_TOOLS_URL"]
        self.mcp_url = told["EVALKIT_MCP_URL"]
        self.folder = told["EVALKIT_WORKDIR"]
        turns = told.get("EVALKIT_MAX_TURNS")
        self.max_turns = int(turns) if turns else None
        calls = told.get("EVALKIT_MAX_CALLS")
        self.max_calls = int(calls) if calls else None
        tokens = told.get("EVALKIT_MAX_TOKENS")
        self.max_tokens = int(tokens) if tokens else None
        dollars = told.get("EVALKIT_MAX_USD")
        self.max_usd = float(dollars) if dollars else None
        self.keyword = told.get("EVALKIT_KEYWORD")
        schema = told.get("EVALKIT_OUTPUT_SCHEMA")
        self.output_schema = json.loads(schema) if schema else None
        #: Whether this process goes on where one was killed, or had ended, and what the user wrote since.
        self.resumes = told.get("EVALKIT_RESUME") == "1"
        self.message = told.get("EVALKIT_MESSAGE")
        self.calls = []
        self._found_open = []
        self._tools = None
        self.decisions = json.loads(told.get("EVALKIT_DECISIONS") or "[]")
        self._user_url = told["EVALKIT_USER_URL"]
        self._approval_url = told.get("EVALKIT_APPROVAL_URL")

    @property
    def tools(self):
        """The tools: objects with ``name``, ``description`` and ``input_schema``."""
        if self._tools is None:
            self._tools = _http(self.tools_url)["tools"]
        return self._tools

    def call(self, name, arguments):
        """Run a tool; its text, with ``.error``."""
        answer = _http(f"{self.tools_url}/{name}", arguments)
        result = Result(answer["text"])
        result.error = bool(answer["error"])
        self.calls.append((name, arguments, result))
        return result

    def next_message(self, ending=None):
        """End this turn of the conversation; the user's next message, or None where there is none.

        A resident program waits here. One that is started anew for each message ends here, and finds the
        message in ``job.message`` when it is started again.
        """
        return self._further(_shaped(ending)).get("message")

    def _further(self, said):
        """Say something where an ending would stand; the line that goes on, empty where none comes."""
        if os.environ.get("EVALKIT_RESIDENT") != "1":
            _write_ending(said)
            os._exit(0)
        _out.write(json.dumps(said) + "\n")
        line = sys.stdin.readline()
        told = json.loads(line) if line else {}
        if "message" in told or "decisions" in told:
            return told
        _ahead.append(line)
        return {}

    def approve(self, calls):
        """Lay calls before a person: ``{"id", "tool", "arguments"}`` each; decisions as they come.

        A decision has ``id``, ``decision`` (allow, refuse, change), the ``arguments`` to run the call with,
        a ``reason``. Nothing comes for a call that nobody decides about.
        """
        body = json.dumps({"calls": calls}).encode()
        request = urllib.request.Request(self._approval_url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            for line in answer:
                yield json.loads(line)

    def wait(self, calls):
        """End here until a person has decided; the decisions, or none where nobody comes.

        A resident program waits. One that is started anew ends, and finds ``job.decisions`` when it is
        started again.
        """
        told = self._further({"waiting": calls})
        return told.get("decisions") or []

    def messages(self):
        """What the user has written since it was last asked, while the program works: a list, at once."""
        return _http(self._user_url)["messages"]

    def words(self, every=0.05):
        """The same as an iterator that waits."""
        while True:
            found = self.messages()
            yield from found
            if not found:
                time.sleep(every)

    def functions(self):
        """The tools as Python functions, for frameworks that read signatures and docstrings."""
        return [_function(self, tool) for tool in self.tools]

    def open_items(self):
        """What the last listing named and no successful call has named since the start: still to do."""
        listed, touched = [], set()
        for name, arguments, result in self.calls:
            if result.error:
                continue
            if name.startswith("list_"):
                listed = re.findall(r"[\w][\w./-]*", str(result).partition(":")[2])
            elif not name.startswith("read_"):
                touched.update(value for value in arguments.values() if isinstance(value, str))
        return [item for item in listed if item not in touched]

    def still_open(self, times=3):
        """The same for a loop that sends the model back: none once it was sent so often for the same ones."""
        self._found_open.append(self.open_items())
        last = self._found_open[-times - 1 :]
        return [] if last == [last[-1]] * (times + 1) else last[-1]


_out = None
#: A line that was read while a message was waited for: the next job, or nothing where no more come.
_ahead = []


def serve(run):
    """Run the job of this process, or in a resident one each job that comes in. ``run(job)`` ends it."""
    global _out
    _out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if os.environ.get("EVALKIT_RESIDENT") != "1":
        _write_ending(_end(run, dict(os.environ)))
        return
    while line := _ahead.pop() if _ahead else sys.stdin.readline():
        told = {name: value for name, value in json.loads(line).items() if isinstance(value, str)}
        os.environ.update(told)
        os.chdir(told["EVALKIT_WORKDIR"])
        ending = _end(run, {**os.environ})
        os.chdir("/")
        for name in told:
            os.environ.pop(name, None)
        if not _ahead:
            _out.write(json.dumps(ending) + "\n")


def _write_ending(ending):
    if os.environ.get("EVALKIT_HEARING") == "1":
        # Asked what it is: a program of this client can do one job after the other.
        ending = {**ending, "client": True}
    with open(os.environ["EVALKIT_ENDING_FILE"], "w") as file:
        json.dump(ending, file)


def _end(run, told):
    try:
        return _shaped(run(Job(told)))
    except Exception as error:
        traceback.print_exc()
        kind = type(error)
        native = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        return {"native": native, "error": str(error)[:500]}


def _shaped(ending):
    if isinstance(ending, dict):
        return ending
    return {"ending": "done"} if ending is None else {"native": str(ending)}


def _http(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def _function(job, tool):
    types = {"string": str, "array": list[str]}
    properties = tool["input_schema"]["properties"]

    def function(**arguments):
        return str(job.call(tool["name"], arguments))

    kind = inspect.Parameter.KEYWORD_ONLY
    function.__name__ = function.__qualname__ = tool["name"]
    function.__annotations__ = {name: types[spec["type"]] for name, spec in properties.items()}
    parameters = [inspect.Parameter(n, kind, annotation=t) for n, t in function.__annotations__.items()]
    function.__annotations__["return"] = str
    function.__signature__ = inspect.Signature(parameters, return_annotation=str)
    lines = "".join(f"\n    {name}: The {name}." for name in properties)
    function.__doc__ = tool["description"] + (f"\n\nArgs:{lines}" if lines else "")
    return function


def _main(name):
    """``python -m evalkit_harness module:function``."""
    module, _, function = name.partition(":")
    sys.path.insert(0, os.environ.get("EVALKIT_IMPORT_FROM", os.getcwd()))
    serve(getattr(importlib.import_module(module), function))


if __name__ == "__main__":
    _main(sys.argv[1])
