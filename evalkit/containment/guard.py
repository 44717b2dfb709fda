"""The guard of one program: it starts it, bounds it, and ends whatever the program started.

A program of its own, without packages, told ``NAME=VALUE… -- COMMAND…``. Its environment
and its folder are the command's. It tells what becomes of it on the descriptor ``status``: ``running`` or
``refused ERRNO``, then ``ended CODE LEFT WHY``.

``way=namespace``: the command lives in a PID namespace of its own, sees the processes in it and no others,
and the kernel ends all of them with the namespace's first process, which is this guard. ``way=subreaper``:
what loses its parent becomes the guard's child, whatever its session and environment, so the guard finds it.
Either way there are two: the outer one ends everything where the inner one is killed, the inner one where
the outer one is.
"""

from __future__ import annotations

import os
import resource
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from evalkit.containment import namespaces, syscall_filter, system_calls, system_view
else:
    # The module beneath, without its enumerations: a third of the time that a guard takes to start.
    import _signal as signal

    import namespaces
    import syscall_filter
    import system_calls
    import system_view

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_PR_SET_DUMPABLE = 4
#: Rights of root over the whole machine: immutable files, the network's set-up, modules, roots, other
#: processes' memory, mounts, a reboot, limits, the clock, devices, the log, MAC, BPF, checkpoints.
_TAKEN = (9, 12, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 32, 33, 34, 35, 37, 38, 39, 40)
#: Seconds between looks: at the number of processes, their memory, their files.
_LOOK, _WEIGH, _MEASURE = 0.02, 0.1, 0.5
#: Seconds that the end of everything may take.
_END = 2.0
#: Beyond the highest number that a process has on any Linux.
_MOST_NUMBERS = 1 << 22


class _Refused(Exception):
    """The command cannot be started."""


def main(arguments: list[str]) -> int:
    """Guard a command to its end."""
    split = arguments.index("--")
    told = dict(argument.split("=", 1) for argument in arguments[:split])
    watched, seen, own = (
        tuple(each.split("=", 1)[1] for each in arguments[:split] if each.startswith(f"{name}="))
        for name in ("watched", "seen", "own")
    )
    status = int(told["status"])
    os.set_inheritable(status, False)
    parent = int(told["parent"])
    if os.geteuid() == 0:
        # Whoever guards a thousand processes must still get its turn.
        told["nice"] = str(os.getpriority(os.PRIO_PROCESS, 0))
        system_calls.attempt(os.setpriority, os.PRIO_PROCESS, 0, -10)
    guard = _Guard(told, watched, arguments[split + 1 :], status)
    alive = _handle_of(parent)
    if os.getppid() != parent:
        return 1
    wakes = _wakes()
    group = system_calls.make_group(2 * int(told["processes"])) if told["processes"] != "0" else None
    guard.group = group
    try:
        if told["way"] == "group":
            guard.keep(alive, wakes)
        else:
            _outer(guard, told, alive, wakes, (seen, own))
        return 0
    finally:
        if group is not None:
            system_calls.drop_group(group)


def _outer(
    guard: _Guard,
    told: dict[str, str],
    alive: int | None,
    wakes: int,
    roots: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    """Start the inner guard and wait for it, or for a reason to end it; then end what is left."""
    namespace = told["way"] == "namespace"
    if namespace:
        namespaces.leave(network=told["network"] != "0")
    else:
        _be_found_by_orphans()
    outer = os.getpid()
    lifeline, held = os.pipe()
    inner = os.fork()
    if inner == 0:
        os.close(held)
        code = 1
        try:
            if namespace:
                system_calls.call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
                namespaces.settle(told["network"] == "0", *roots)
            else:
                _be_found_by_orphans()
                guard.guards = (outer, os.getpid())
            guard.namespace = namespace
            guard.keep(lifeline, _wakes())
            code = 0
        except OSError as error:
            system_calls.attempt(os.write, guard.status, f"failed {error}\n".encode())
        finally:
            os._exit(code)
    os.close(lifeline)
    _let_go()
    while not _reaped(inner):
        ready = select.select([wakes, *([] if alive is None else [alive])], [], [], 1.0)[0]
        if wakes in ready and _told_to_end(wakes):
            os.kill(inner, signal.SIGTERM)
            end = time.monotonic() + _END / 2
            while not _reaped(inner) and time.monotonic() < end:
                time.sleep(0.002)
            break
        if alive in ready:
            break
    if inner not in _ended:
        os.kill(inner, signal.SIGKILL)
        # In a namespace this returns when the whole of it is gone.
        os.waitpid(inner, 0)
    elif os.WIFSIGNALED(_ended[inner]):
        left = len(list(system_view.descendants(outer)))
        system_calls.attempt(
            os.write, guard.status, f"ended {-os.WTERMSIG(_ended[inner])} {left} \n".encode()
        )
    if not namespace:
        _end_all()


def _be_found_by_orphans() -> None:
    """Become the parent of what loses its own; nobody of the same user may trace this process."""
    system_calls.call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    system_calls.call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)


class _Guard:
    """The command, and what is kept of it."""

    def __init__(
        self, told: dict[str, str], watched: tuple[str, ...], command: list[str], status: int
    ) -> None:
        self.told = told
        self.watched = watched
        self.command = command
        self.status = status
        self.group: str | None = None
        self.namespace = False
        #: The processes that the command may not signal.
        self.guards: tuple[int, ...] = ()
        self._weighed = self._measured = 0.0
        self._measuring = _MEASURE

    def number(self, name: str) -> int:
        return int(self.told.get(name, "0"))

    def keep(self, alive: int | None, wakes: int) -> None:
        """Start the command, watch it to its end, end the rest, and tell of it."""
        try:
            first = self._start()
        except _Refused as refused:
            system_calls.attempt(os.write, self.status, f"refused {refused}\n".encode())
            return
        system_calls.attempt(os.write, self.status, b"running\n")
        _let_go()
        code: int | None = None
        why = ""
        listening = [wakes, *([] if alive is None else [alive])]
        while code is None and not why:
            ready = select.select(listening, [], [], _LOOK)[0]
            if wakes in ready and _told_to_end(wakes):
                why = "told"
            if alive in ready:
                why = "parent"
            for process, ended in _reap():
                if process == first:
                    code = os.waitstatus_to_exitcode(ended)
            why = why or (self._over() if code is None else "")
        left = len([process for process in self._processes() if process != first])
        said = "" if code is None else str(code)
        system_calls.attempt(os.write, self.status, f"ended {said or '-'} {left} {why}\n".encode())
        if not self.namespace:
            _end_all(first)

    def _start(self) -> int:
        heard, told = os.pipe()
        first = os.fork()
        if first == 0:
            try:
                self._become()
            except OSError as error:
                os.write(told, str(error.errno).encode())
            except BaseException:
                os.write(told, b"5")
            finally:
                os._exit(127)
        os.close(told)
        problem = os.read(heard, 16)
        os.close(heard)
        if problem:
            os.waitpid(first, 0)
            raise _Refused(problem.decode())
        return first

    def _become(self) -> None:
        """In the child: set the limits, give up the rights, become the command."""
        os.setsid()
        linux = hasattr(system_calls.library(), "prctl")
        if linux:
            system_calls.call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            system_calls.call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)
        for name in (
            "SIGPIPE",
            "SIGXFSZ",
            "SIGXFZ",
            "SIGTERM",
            "SIGCHLD",
            "SIGINT",
            "SIGHUP",
            "SIGQUIT",
            "SIGIO",
        ):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if "nice" in self.told:
            os.setpriority(os.PRIO_PROCESS, 0, self.number("nice"))
        if self.group is not None:
            system_calls.attempt(system_calls.write_file, f"{self.group}/cgroup.procs", "0")
        system_calls.attempt(system_calls.write_file, "/proc/self/oom_score_adj", "500")
        system_calls.limit(resource.RLIMIT_CORE, 0)
        for name, kind, unit in (
            ("cpu_s", resource.RLIMIT_CPU, 1),
            ("file_mb", resource.RLIMIT_FSIZE, 1 << 20),
            ("address_mb", resource.RLIMIT_AS, 1 << 20),
            ("open_files", resource.RLIMIT_NOFILE, 1),
        ):
            if self.number(name):
                system_calls.limit(kind, self.number(name) * unit)
        if self.namespace and os.geteuid() and self.number("processes"):
            # Counted in the user namespace alone, threads too; root is not bound by it.
            system_calls.limit(resource.RLIMIT_NPROC, 2 * self.number("processes"))
        if linux and os.geteuid() == 0:
            for right in _TAKEN:
                system_calls.library().prctl(_PR_CAPBSET_DROP, right, 0, 0, 0)
        if linux:
            system_calls.library().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if self.guards:
            system_calls.attempt(syscall_filter.refuse_signals, self.guards)
        self._run()

    def _run(self) -> None:
        """As ``os.execvp``, which would load a module: this Python's own need not be among the files here."""
        name = self.command[0]
        problem = OSError(2, os.strerror(2))
        for place in ("",) if "/" in name else os.environ.get("PATH", os.defpath).split(":"):
            try:
                os.execv(os.path.join(place, name) if place else name, self.command)
            except FileNotFoundError:
                continue
            except NotADirectoryError:
                continue
            except OSError as error:
                problem = error
        raise problem

    def _over(self) -> str:
        """The limit that the command is over, if it is."""
        now = time.monotonic()
        most = self.number("processes")
        processes = self._processes()
        if most and len(processes) > most:
            return f"started more than {most} processes"
        most = self.number("memory_mb")
        if most and now - self._weighed > _WEIGH:
            self._weighed = now
            if sum(map(system_view.memory_of, processes)) > most << 20:
                return f"used more than {most} MB of memory"
        most, files = self.number("written_mb"), self.number("files")
        if self.watched and now - self._measured > self._measuring:
            size, count = system_view.size_of(self.watched, most << 20, files)
            self._measured = time.monotonic()
            self._measuring = max(_MEASURE, 10 * (self._measured - now))
            if most and size > most << 20:
                return f"wrote more than {most} MB"
            if files and count > files:
                return f"made more than {files} files"
        return ""

    def _processes(self) -> list[int]:
        """The processes of the command that live."""
        if not self.namespace:
            return list(system_view.descendants(os.getpid()))
        return [
            process
            for process in system_view.numbers()
            if process != 1 and not system_view.is_dead(system_view.stat_of(process))
        ]


# Children


def _end_all(first: int = 0) -> None:
    """End what is below this process. Each look finds what was started since the last one."""
    end = time.monotonic() + _END
    while time.monotonic() < end:
        _reap()
        if not _has_children():
            return
        left = list(system_view.descendants(os.getpid())) or _unseen_children()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in left:
                system_calls.attempt(os.kill, process, number)
        if first and not left:
            system_calls.attempt(os.kill, -first, signal.SIGKILL)
        _reap()
        time.sleep(0.002)


def _unseen_children() -> list[int]:
    """The living children where the system shows no processes: each number since this one's is asked for."""
    if system_view.numbers() or not hasattr(os, "waitid"):
        return []
    last = os.fork()
    if last == 0:
        os._exit(0)
    own = os.getpid()
    # Numbers are given in turn, and begin anew after the last one.
    asked = range(own + 1, last) if last > own else (*range(own + 1, _MOST_NUMBERS), *range(2, last))
    return [process for process in asked if _is_child(process)]


def _is_child(process: int) -> bool:
    try:
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except OSError:
        return False


def _reap() -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except OSError:
            return found
        if process == 0:
            return found
        found.append((process, status))


#: Children that ended, and their status.
_ended: dict[int, int] = {}


def _reaped(process: int) -> bool:
    _ended.update(_reap())
    return process in _ended


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


# Signals


def _wakes() -> int:
    """A descriptor that is readable after a signal; the byte there is its number."""
    heard, told = os.pipe()
    os.set_blocking(heard, False)
    os.set_blocking(told, False)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)
    # Whoever has a file may have this sent to anybody.
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    return heard


def _told_to_end(wakes: int) -> bool:
    try:
        return signal.SIGTERM in os.read(wakes, 4096)
    except OSError:
        return False


def _handle_of(process: int) -> int | None:
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None


def _let_go() -> None:
    """The command's input and output are its own."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    os.close(nothing)
