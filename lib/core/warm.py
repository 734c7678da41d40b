"""Kernels that begin with the large libraries loaded: forks of a process that imports them once.

The five notebooks of a study import the same libraries, some seconds each. Each still has a kernel
of its own, which knows nothing of the one before: the server imports other people's libraries only,
computes nothing, and forks itself for each kernel. Modules of this package are imported by the
kernels, so that each runs the code of its own time. Linux only, for elsewhere libraries do not
survive a fork, and not beside a GPU, whose driver does not either.

A kernel and its client meet in sockets of a temporary folder: a port that is free when it is chosen
can be another process's by the time the libraries are loaded.

    python -m lib.core.warm 5 torch     the server: its socket's file descriptor, what it imports
"""

import builtins
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# What notebooks import of others, the slow ones first.
LIBRARIES = (
    "torch",
    "pandas",
    "matplotlib.pyplot",
    "seaborn",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.feature_extraction.text",
    "transformers",
    "transformers.models.bert.modeling_bert",
    "statsmodels.api",
    "ipykernel.kernelapp",
)
_LAUNCHER = "ipykernel_launcher"
_BETWEEN_LOOKS = 0.2  # seconds between looks for kernels that have ended
_LONGEST_SOCKET = 107  # characters of a Unix socket's path


def can_fork() -> bool:
    """Whether kernels can be forked here."""
    return sys.platform == "linux" and not Path("/dev/nvidiactl").exists()


@contextmanager
def warm_kernels(wanted: bool) -> Iterator["WarmKernels | None"]:
    """Kernels for the stages of a run, None where none are wanted or they cannot be forked."""
    kernels = WarmKernels() if wanted and can_fork() else None
    try:
        yield kernels
    finally:
        if kernels:
            kernels.close()


class WarmKernels:
    """A server and its kernels; `close` ends both.

    The server begins with the first kernel, in whose environment it imports the `libraries`.
    """

    def __init__(self, libraries: Sequence[str] = LIBRARIES) -> None:
        self.libraries = libraries
        self._socket = socket.socket()
        self._server: subprocess.Popen[bytes] | None = None
        self._ended: dict[int, int] = {}
        self._unread = b""
        self._sockets = tempfile.TemporaryDirectory(prefix="kernels-")
        self._placed = 0

    def start(self, arguments: Sequence[str], env: dict[str, str], cwd: str) -> int:
        """Fork a kernel with arguments for ipykernel; returns its process id.

        Raises:
            ChildProcessError: the server has ended.
        """
        if self._server is None:
            self._socket, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-m", __name__, str(theirs.fileno()), *self.libraries]
                self._server = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env)
        request = {"arguments": list(arguments), "env": env, "cwd": cwd}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            for line in self._lines(wait=True):
                if "started" in line:
                    return int(line["started"])

    def sockets(self) -> dict[str, str]:
        """Where the next kernel meets its client, as traits of a kernel manager.

        Empty, which means ports, where the temporary folder's path is too long for a socket.
        """
        self._placed += 1
        place = f"{self._sockets.name}/{self._placed}"
        return {"transport": "ipc", "ip": place} if len(place) + 2 < _LONGEST_SOCKET else {}

    def status(self, process: int) -> int | None:
        """The exit status of a kernel that has ended, else None; no kernel outlives the server."""
        if process not in self._ended:
            try:
                self._lines(wait=False)
            except (ChildProcessError, ConnectionResetError):
                self._ended[process] = 1
        return self._ended.get(process)

    def close(self) -> None:
        """Let the server end, which ends its kernels."""
        self._socket.close()
        if self._server is not None:
            self._server.wait()
        self._sockets.cleanup()

    def _lines(self, wait: bool) -> list[dict[str, int]]:
        """What the server has said since; the ends of kernels are noted."""
        while wait or select.select([self._socket], [], [], 0)[0]:
            received = self._socket.recv(65536)
            if not received:
                raise ChildProcessError("Kernel died before it was started: its server has ended")
            self._unread += received
            if wait and b"\n" in self._unread:
                break
        *whole, self._unread = self._unread.split(b"\n")
        lines: list[dict[str, int]] = [json.loads(line) for line in whole]
        self._ended |= {line["ended"]: line["status"] for line in lines if "ended" in line}
        return lines


def kernel_manager(kernels: WarmKernels, base: type | None = None) -> type:
    """A kernel manager that starts Python kernels as forks of the server.

    Args:
        kernels: the server.
        base: the class of jupyter_client that it extends; None: the one that nbclient uses.
    """
    from jupyter_client import AsyncKernelManager
    from jupyter_client.provisioning import LocalProvisioner

    kind: Any = base or AsyncKernelManager

    class Provisioner(LocalProvisioner):
        async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
            if _LAUNCHER not in cmd:  # a kernel of another kind
                return await super().launch_kernel(cmd, **kwargs)
            arguments = cmd[cmd.index(_LAUNCHER) + 1 :]
            env, cwd = dict(kwargs.get("env") or os.environ), kwargs.get("cwd") or os.getcwd()
            self.pid = self.pgid = kernels.start(arguments, env, str(cwd))
            self.process: Any = _Process(kernels, self.pid)
            self.cwd = cwd
            return self.connection_info

    class Manager(kind):
        provisioner: Any

        def __init__(self, *args: Any, **traits: Any) -> None:
            super().__init__(*args, **kernels.sockets() | traits)

        async def _async_pre_start_kernel(self, **kwargs: Any) -> Any:
            if self.provisioner is None:
                self.provisioner = Provisioner(
                    kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
                )
            return await super()._async_pre_start_kernel(**kwargs)

    return Manager


class _Process:
    """A kernel as `subprocess.Popen` shows it."""

    stdin = stdout = stderr = None

    def __init__(self, kernels: WarmKernels, pid: int) -> None:
        self.kernels, self.pid = kernels, pid

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        return self.kernels.status(self.pid)

    def wait(self) -> int | None:
        """The same: who asks has waited already."""
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Send a signal to the kernel, if it runs still."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def serve(connection: socket.socket, libraries: Sequence[str]) -> None:
    """Fork a kernel for each request, and say which have ended, until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's, and the kernels'
    # As ipykernel does before its first import of matplotlib, so that notebooks show their figures.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    given = set(os.environ)
    if sys.path[0] in ("", os.getcwd()):  # as `python -m ipykernel_launcher` does
        del sys.path[0]
    with _looking_like_a_kernel():
        for name in libraries:
            with suppress(ImportError):  # a kernel that needs it says so itself
                import_module(name)
    running: set[int] = set()
    unread = b""
    while True:
        for process in sorted(running):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                running.remove(process)
                _say(connection, {"ended": ended, "status": os.waitstatus_to_exitcode(status)})
        if not select.select([connection], [], [], _BETWEEN_LOOKS)[0]:
            continue
        received = connection.recv(65536)
        if not received:
            break
        *requests, unread = (unread + received).split(b"\n")
        for request in requests:
            process = os.fork()
            if process == 0:
                connection.close()
                _become_kernel(**json.loads(request), given=given)
            running.add(process)
            _say(connection, {"started": process})
    for process in running:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def _say(connection: socket.socket, line: dict[str, int]) -> None:
    with suppress(BrokenPipeError):  # the runner is gone; the next look ends the server
        connection.sendall(json.dumps(line).encode() + b"\n")


@contextmanager
def _looking_like_a_kernel() -> Iterator[None]:
    """Within, who looks at its import for a terminal (pandas does, for its width) sees a kernel."""
    vars(builtins)["get_ipython"] = lambda: SimpleNamespace(kernel=None)
    try:
        yield
    finally:
        del vars(builtins)["get_ipython"]


def _become_kernel(arguments: list[str], env: dict[str, str], cwd: str, given: set[str]) -> None:
    """What `python -m ipykernel_launcher` does, in a fork; does not return.

    What libraries have added to the environment that was `given` to the server stays.
    """
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(cwd)
        for name in given - set(env):
            del os.environ[name]
        os.environ.update(env | {"JPY_PARENT_PID": str(os.getppid())})
        package = __package__.partition(".")[0]
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]
        sys.argv = [_LAUNCHER, *arguments]
        from ipykernel.kernelapp import launch_new_instance

        launch_new_instance()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
