"""What the training process and its worker processes say to each other, over a pair of sockets.

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

import os
import pickle
import socket
import struct
from typing import Any, NamedTuple

from penstock.flow.making.layout import Layout
from penstock.flow.workers.parcels import Parcel
from penstock.flow.workers.tasks import Task

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
