"""What the training process and its worker processes say to each other: values, errors and shared memory.

training process                                     worker process
Begin (the program, how many threads)           ──►  loads it; one that is asked to makes the first sample
                                                ◄──  Tried (the layout of that sample)
Arrange (the layout of batches)                 ──►  completes the program
Slot (memory of a batch)                        ──►  maps it
Work (a task)                                   ──►  does it
                                                ◄──  Answer, or Failed to begin
Leave (the epoch is over)                       ──►  forgets tasks and slots of that run
Resize (how many threads)                       ──►
end of the stream                               ──►  ends itself
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import pickle
import socket
import struct
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from penstock.errors import OptionError, PenstockError
from penstock.flow.making.chains import function_name
from penstock.flow.making.layout import Layout
from penstock.flow.making.program import Program
from penstock.flow.steps import Map
from penstock.flow.workers.executors import Task

# Memory that processes share: without a name, so that nothing is left behind however they end.
#
# A file in memory (memfd) is made, sized and handed over by descriptor. Once all have mapped it, no descriptor is
# needed any more; the system takes the memory back with the last mapping.


def is_available() -> bool:
    """Whether this system has memory without a name, and can hand over descriptors."""
    return hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


def new_memory(size: int, purpose: str) -> int:
    """The descriptor of `size` bytes that exist: using memory that was only promised could end the process."""
    descriptor = os.memfd_create("penstock", os.MFD_CLOEXEC)
    try:
        os.posix_fallocate(descriptor, 0, max(size, 1))
    except OSError as error:
        os.close(descriptor)
        raise OptionError(
            f"there is no shared memory left for {purpose}: {size / 2**20:,.1f} MB were needed ({error.strerror}). "
            'Use smaller batches, a smaller prefetch, fewer workers, or executor="thread", which needs none.'
        ) from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def mapped(descriptor: int, size: int, *, private: bool = False) -> Any:
    """The memory behind a descriptor as a writable buffer, mapped until nobody holds it.

    `private` keeps what is written to this process. Python's mmap would keep a descriptor for each mapping, and a
    user who keeps a thousand batches would run out of them.
    """
    size = max(size, 1)
    kind = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED
    address = _library().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, kind, descriptor, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, f"{size:,} bytes of shared memory cannot be mapped: {os.strerror(number)}")
    memory = (ctypes.c_ubyte * size).from_address(address)
    # Not at exit: arrays over it may be in use until the very end.
    weakref.finalize(memory, _library().munmap, address, size).atexit = False
    return memory


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_int
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, number, number, number, ctypes.c_int64)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library


# Values on their way to another process: large arrays travel as shared memory, the rest as bytes.


LARGE_BYTES = 64 << 10  # below, a copy through the socket is cheaper than memory of its own
ALIGNMENT = 64

Dump = Callable[..., bytes]


class Parcel(NamedTuple):
    """A pickled value; the sizes of its large buffers, which stand one after another in shared memory."""

    body: bytes
    sizes: tuple[int, ...]


def wrapped(value: Any, dump: Dump = pickle.dumps, purpose: str = "an answer") -> tuple[Parcel, list[int]]:
    """A value as a parcel, and the descriptor of its shared memory where it needs some."""
    large: list[memoryview] = []

    def stays_inside(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < LARGE_BYTES:
            return True
        large.append(view)
        return False

    body = dump(value, protocol=5, buffer_callback=stays_inside)
    sizes = tuple(view.nbytes for view in large)
    if not large:
        return Parcel(body, ()), []
    descriptor = new_memory(sum(map(_aligned, sizes)), purpose)
    try:
        memory = np.frombuffer(mapped(descriptor, sum(map(_aligned, sizes))), np.uint8)
        start = 0
        for view in large:
            memory[start : start + view.nbytes] = np.frombuffer(view, np.uint8)
            start += _aligned(view.nbytes)
    except BaseException:
        os.close(descriptor)
        raise
    return Parcel(body, sizes), [descriptor]


def unwrapped(parcel: Parcel, descriptors: list[int], *, private: bool = False) -> Any:
    """The value of a parcel; its large arrays stay where they are. `private`: others have the same memory."""
    if not parcel.sizes:
        return pickle.loads(parcel.body)
    memory = np.frombuffer(mapped(descriptors[0], sum(map(_aligned, parcel.sizes)), private=private), np.uint8)
    views, start = [], 0
    for size in parcel.sizes:
        views.append(memory[start : start + size])
        start += _aligned(size)
    return pickle.loads(parcel.body, buffers=views)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


_HEADER = struct.Struct("<QI")  # bytes of the message, descriptors that come with it
MOST_DESCRIPTORS = 4


class Begin(NamedTuple):
    program: Parcel
    threads: int
    tries_first: bool = False


class Tried(NamedTuple):
    parcel: Parcel


class Arrange(NamedTuple):
    layout: Layout


class Slot(NamedTuple):
    run: int  # which run of the engine: answers and slots of an epoch that was left mean nothing in the next one
    number: int
    size: int


class Work(NamedTuple):
    run: int
    task: Task


class Leave(NamedTuple):
    run: int


class Resize(NamedTuple):
    threads: int


class Answer(NamedTuple):
    run: int
    task: Task
    parcel: Parcel


class Failed(NamedTuple):
    parcel: Parcel


def send(connection: socket.socket, message: Any, descriptors: list[int]) -> None:
    """Send a message with descriptors; the receiver gets copies of them."""
    body = pickle.dumps(message, protocol=5)
    header = _HEADER.pack(len(body), len(descriptors))
    if descriptors:
        socket.send_fds(connection, [header], descriptors)
        connection.sendall(body)
    else:
        connection.sendall(header + body)


def receive(connection: socket.socket) -> tuple[Any, list[int]] | None:
    """The next message and its descriptors, or None at the end of the stream."""
    descriptors: list[int] = []
    try:
        header = _header(connection, descriptors)
        body = None if header is None else _exactly(connection, header[0])
    except OSError:  # the other end was killed in the middle, or this one was closed
        body = None
    if body is None:
        close_all(descriptors)
        return None
    return pickle.loads(body), descriptors


def _header(connection: socket.socket, descriptors: list[int]) -> tuple[int, int] | None:
    """How long the message is; its descriptors come with these bytes."""
    data = b""
    while len(data) < _HEADER.size:
        # Not to be inherited: what a user's function starts must not hold memory of ours.
        piece, found, _, _ = socket.recv_fds(
            connection, _HEADER.size - len(data), MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        descriptors += found
        if not piece:
            return None
        data += piece
    size, expected = _HEADER.unpack(data)
    return None if len(descriptors) != expected else (size, expected)


def _exactly(connection: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    view = memoryview(data)
    while len(view):
        count = connection.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return data


def close_all(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


# Errors on their way from a worker process: their kind, their cause, and where in the user's code it happened.


class Carried(NamedTuple):
    """An error as bytes; `story` is the traceback of what went wrong first."""

    error: bytes
    cause: bytes | None
    story: str


class WorkerError(PenstockError):
    """Stands for an error that cannot leave its process; its text says which it was."""


def carried(error: BaseException) -> Carried:
    """An error as something that can be sent."""
    cause = error.__cause__
    story = "".join(traceback.format_exception(cause or error)).rstrip()
    return Carried(_pickled(error), None if cause is None else _pickled(cause), f"In a worker process:\n{story}")


def revived(carried: Carried) -> BaseException:
    """The error again, with the traceback of the worker as a note of what went wrong first."""
    error = _loaded(carried.error)
    if carried.cause is None:
        error.add_note(carried.story)
        return error
    cause = _loaded(carried.cause)
    cause.add_note(carried.story)
    error.__cause__ = cause
    return error


def _pickled(error: BaseException) -> bytes:
    """An error that comes back as it was, or one that stands for it."""
    try:
        body = cloudpickle.dumps(error)
        if isinstance(pickle.loads(body), type(error)):
            return bytes(body)
    except Exception:  # noqa: BLE001 - the pickling of a user's error may fail in any way; its text is sent instead
        pass
    return pickle.dumps(WorkerError(f"{type(error).__name__}: {error}"))


def _loaded(body: bytes) -> BaseException:
    error: BaseException = pickle.loads(body)
    return error


# A program as something that can be sent to worker processes, or a clear word on why it cannot.


REMEDY = (
    "What is open or locked (files, connections, locks, generators) cannot be sent to another process: make it inside "
    'the function, or use executor="thread".'
)


def parcel_of(program: Program) -> tuple[Parcel, list[int]]:
    """The program as a parcel, and its descriptors. Functions of a script or notebook are sent as they are."""
    try:
        return wrapped(program, cloudpickle.dumps, "the program")
    except OptionError:
        raise
    except Exception as error:
        raise OptionError(
            f"{_culprit(program)} cannot be sent to worker processes: {_reason(error)}. {REMEDY}"
        ) from error


def _culprit(program: Program) -> str:
    """The first part of a program that cannot be pickled by itself."""
    for words, part in _parts(program):
        try:
            cloudpickle.dumps(part)
        except Exception:  # noqa: BLE001 - whatever pickling raises, this is the part that is looked for
            return words
    return "this flow"


def _parts(program: Program) -> Iterator[tuple[str, Any]]:
    chains = [*(leaf.chain for leaf in program.leaves), program.batch_chain]
    for link in (link for chain in chains for link in chain):
        step = link.step
        if isinstance(step, Map):
            yield f"step {link.number}, map({function_name(step.function)}): this function", step.function
        else:
            yield f"step {link.number}, {step.name}: this step", step
    for leaf in program.leaves:
        yield f"the source {leaf.source.kind.__name__}", leaf.source


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")
