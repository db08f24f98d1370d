"""What the operating system refused, in words that say what to do next."""

from __future__ import annotations

import errno

_REMEDIES = {
    errno.EACCES: "You have no right to do this: change the rights, or choose another place.",
    errno.EPERM: "You have no right to do this: change the rights, or choose another place.",
    errno.EROFS: "Choose a place that can be written to.",
    errno.ENOENT: "Check the path: the file or its folder is not there, or was removed in the meantime.",
    errno.EEXIST: "A file is in the way: choose another name.",
    errno.ENOTDIR: "A file is in the way: choose another name.",
    errno.EISDIR: "Name a file.",
    errno.ENOSPC: "Free some space, or choose another disk.",
    errno.EDQUOT: "Free some space, or choose another disk.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EIO: "The disk failed: look at the log of the system, and use another disk.",
    errno.ENOLCK: "The disk has no locks (NFS without a lock service?): choose a place on another disk.",
    errno.ELOOP: "A link leads back to itself: remove it, or choose another name.",
    errno.EMFILE: "Raise the limit of open files (ulimit -n).",
}


def file_message(error: OSError) -> str:
    """Which file, what happened, and what to do about it."""
    where = f"{error.filename}: " if error.filename is not None else ""
    what = (error.strerror or str(error) or type(error).__name__).rstrip(".")
    remedy = _REMEDIES.get(error.errno or 0, "")
    return f"{where}{what}. {remedy}".rstrip()
