"""The calls of the kernel that a program in the sandbox may not make, as a filter of seccomp(2).

A user without rights can make a user namespace, in which it is root: it could mount file systems without a limit there,
and reach parts of the kernel that only root needs. Shared memory, queues and files in memory count for no process and
so have no limit. Some families of sockets know nothing of namespaces: those of virtual machines lead to the host. No
program that is to be graded needs these calls.
"""

from __future__ import annotations

import errno
import struct
from typing import Final

_REFUSED: Final = {  # name → number on x86_64 and on aarch64
    "add_key": (248, 217),
    "bpf": (321, 280),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "msgget": (68, 186),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_CLONE: Final = (56, 220)
_SOCKET: Final = (41, 198)
_FAMILIES: Final = (1, 2, 10, 16)  # of sockets that are not refused: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_AUDIT: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # of linux/audit.h, in the order of the numbers
MACHINES: Final = tuple(_AUDIT)
"""The machines whose calls are known, as `uname` names them."""

_CLONE3: Final = 435  # hides its flags; without it, C libraries call clone
_FOREIGN: Final = 0x40000000  # from here on: calls of x32
_NEW_USER: Final = 0x10000000  # CLONE_NEWUSER

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # of linux/filter.h
_NUMBER_AT, _AUDIT_AT, _FIRST_AT = 0, 4, 16  # in struct seccomp_data; the first argument
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def filter_calls(machine: str) -> bytes | None:
    """The filter for a machine, as instructions of a BPF program; None for one whose calls are not known here."""
    if machine not in MACHINES:
        return None
    at = MACHINES.index(machine)
    refuse, unknown = (_RETURN, 0, 0, _ERROR | errno.EPERM), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)
    allow = (_RETURN, 0, 0, _ALLOW)
    lines = [
        (_LOAD, 0, 0, _AUDIT_AT),
        (_EQUAL, 1, 0, _AUDIT[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _FOREIGN),
        refuse,
        (_EQUAL, 0, 1, _CLONE3),
        unknown,
    ]
    for numbers in _REFUSED.values():
        lines += [(_EQUAL, 0, 1, numbers[at]), refuse]
    lines += [
        (_EQUAL, 0, 3, _CLONE[at]),
        (_LOAD, 0, 0, _FIRST_AT),
        (_ANY_BIT, 0, 1, _NEW_USER),
        refuse,
        (_LOAD, 0, 0, _NUMBER_AT),
        (_EQUAL, 1, 0, _SOCKET[at]),
        allow,
        (_LOAD, 0, 0, _FIRST_AT),
        *((_EQUAL, later, 0, family) for later, family in zip(range(len(_FAMILIES), 0, -1), _FAMILIES, strict=True)),
        refuse,
        allow,
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
