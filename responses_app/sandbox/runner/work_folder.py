"""Work folder of a container: a tmpfs of limited size with the files of the code.

The code may replace any file or folder at any time. Paths are opened component by component without following symbolic
links, so that the runner never leaves the tmpfs.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from responses_app.sandbox import system
from responses_app.sandbox.base import WORK_FOLDER, FileMissing, InvalidPath, WorkFile

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
PARTS = ("data", "tmp", "shm")
MAX_DEPTH = 32
MAX_LISTED_DEPTH = 64
# Bytes of a path. Long names in deep folders would make gigabytes of text of a few thousand files.
MAX_LISTED_PATH_BYTES = 1024
MAX_NAME_BYTES = 255
# Changed files in the result of a run, in the order of paths. The server stores fewer.
MAX_CHANGED_FILES = 256
# Files that a notice names, and characters of each path.
MAX_NAMED, MAX_NAMED_CHARS = 8, 200
# Attempts to create a file while the code changes the folders of its path.
CREATE_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class FileState:
    """Size and times of a file, which differ after a change."""

    size: int
    inode: int
    modified_ns: int
    changed_ns: int


class WorkFolder:
    """Mounted tmpfs at `root` with the folders `data`, `tmp` and `shm`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Paths of files that the server has stored: written by the server, or read for the storage.
        self._stored: set[str] = set()

    def mount(self, size_mib: int, max_files: int) -> None:
        """Mount the tmpfs. Raises OSError."""
        self.root.mkdir(mode=0o700)
        system.mount_tmpfs(self.root, f"size={size_mib}m,nr_inodes={max_files},mode=700")
        for name in PARTS:
            (self.root / name).mkdir(mode=0o700)

    def unmount(self) -> None:
        """Unmount the tmpfs, which frees the files."""
        with suppress(OSError):
            system.unmount(self.root)
        with suppress(OSError):
            self.root.rmdir()

    def states(self) -> dict[str, FileState]:
        """Return the regular files of the data folder by absolute path. Bytes that are not UTF-8 are surrogates, as in Python.

        Files deeper than MAX_LISTED_DEPTH or with longer paths than MAX_LISTED_PATH_BYTES are left out; those deeper than MAX_DEPTH
        cannot be read.
        """
        states_by_path: dict[str, FileState] = {}
        # The folder is unmounted if the container is deleted during a run.
        with suppress(FileNotFoundError), _folder("data", self.root) as descriptor:
            _add_files(states_by_path, PurePosixPath(WORK_FOLDER), descriptor, 1)
        return states_by_path

    def open_file(self, path: str) -> int:
        """Return a descriptor to read a regular file. Raises InvalidPath, FileMissing."""
        with self._parent(path, make=False) as (folder, name):
            descriptor = _open_regular(name, os.O_RDONLY, folder, path)
        self._stored.add(absolute_path(path))
        return descriptor

    def create_file(self, path: str) -> int:
        """Return a descriptor to write a new file, which replaces a file with the same path. Raises InvalidPath, OSError."""
        for _ in range(CREATE_ATTEMPTS):
            # The code may delete a folder, or make a file, between two steps.
            with suppress(FileMissing, FileNotFoundError, FileExistsError):
                descriptor = self._replace_file(path)
                self._stored.add(absolute_path(path))
                return descriptor
        raise InvalidPath(f"{path!r} cannot be written, as the code in the container changes the path meanwhile")

    def _replace_file(self, path: str) -> int:
        with self._parent(path, make=True) as (folder, name):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS, 0o644, dir_fd=folder)

    def delete_file(self, path: str) -> None:
        """Delete a regular file. Raises InvalidPath, FileMissing."""
        with self._parent(path, make=False) as (folder, name):
            os.close(_open_regular(name, os.O_RDONLY, folder, path))
            os.unlink(name, dir_fd=folder)
        self._stored.discard(absolute_path(path))

    def take_deleted(self) -> tuple[str, ...]:
        """Return the absolute paths of stored files that are no regular files any more, and forget these files.

        No process of the container may run meanwhile.
        """
        # A copy, as requests add files meanwhile in the thread of the event loop.
        deleted = sorted(path for path in list(self._stored) if self._is_missing(path))
        self._stored.difference_update(deleted)
        return tuple(deleted)

    def _is_missing(self, path: str) -> bool:
        """Return whether there is no regular file at `path`. An error that leaves this open counts as a file."""
        place = self.root / "data"
        try:
            mode = os.lstat(place).st_mode
            for part in path_parts(path):
                if not stat.S_ISDIR(mode):
                    return True
                place /= part
                mode = os.lstat(place).st_mode
        except OSError as error:
            return error.errno == errno.ENOENT
        return not stat.S_ISREG(mode)

    @contextmanager
    def _parent(self, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
        """Open the folder of a path. With `make`, create missing folders."""
        *folders, name = path_parts(path)
        descriptor = os.open(self.root / "data", FOLDER_FLAGS)
        try:
            for part in folders:
                descriptor = _enter(descriptor, part, make=make, path=path)
            yield descriptor, name
        except IsADirectoryError:
            raise InvalidPath(f"{path!r} is a folder") from None
        finally:
            os.close(descriptor)


def changed_files(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> tuple[WorkFile, ...]:
    """Return the first MAX_CHANGED_FILES of the files that are new or have changed, and whose names are UTF-8."""
    paths = sorted(path for path, state in after.items() if before.get(path) != state and _is_utf8(path))
    return tuple(WorkFile(path, after[path].size) for path in paths[:MAX_CHANGED_FILES])


def undecodable_names_notice(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> tuple[str, ...]:
    """Return a notice about new and changed files whose names are not UTF-8, if there are any."""
    paths = sorted(path for path, state in after.items() if before.get(path) != state and not _is_utf8(path))
    if not paths:
        return ()
    names = [os.fsencode(path).decode(errors="backslashreplace")[:MAX_NAMED_CHARS] for path in paths[:MAX_NAMED]]
    more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
    return (f"Not offered for download, as the names are not UTF-8: {', '.join(names)}{more}.",)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _folder(name: str, parent: Path | int) -> Iterator[int]:
    descriptor = (
        os.open(parent / name, FOLDER_FLAGS) if isinstance(parent, Path) else os.open(name, FOLDER_FLAGS, dir_fd=parent)
    )
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _add_files(states_by_path: dict[str, FileState], place: PurePosixPath, descriptor: int, depth: int) -> None:
    """Add the regular files below an open folder, without files that the code deletes meanwhile."""
    with suppress(OSError):
        for name in os.listdir(descriptor):
            with suppress(OSError):
                if len(os.fsencode(place / name)) > MAX_LISTED_PATH_BYTES:
                    continue
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    states_by_path[str(place / name)] = FileState(
                        status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
                    )
                elif stat.S_ISDIR(status.st_mode) and depth < MAX_LISTED_DEPTH:
                    with _folder(name, descriptor) as folder:
                        _add_files(states_by_path, place / name, folder, depth + 1)


def absolute_path(path: str) -> str:
    """Return a path below the work folder as the code names the file. Raises InvalidPath."""
    return "/".join([WORK_FOLDER, *path_parts(path)])


def path_parts(path: str) -> list[str]:
    """Split a path below the work folder, absolute or relative. Raises InvalidPath for all other paths."""
    relative = path.removeprefix(f"{WORK_FOLDER}/")
    parts = relative.split("/")
    is_valid = all(part not in ("", ".", "..") and len(os.fsencode(part)) <= MAX_NAME_BYTES for part in parts)
    if not is_valid or len(parts) > MAX_DEPTH or "\0" in path:
        raise InvalidPath(f"{path!r} is not a path of a file below {WORK_FOLDER}")
    return parts


def _enter(parent: int, name: str, *, make: bool, path: str) -> int:
    """Open a folder of `parent`, and close `parent` on success."""
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=parent)
    try:
        descriptor = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        raise FileMissing(f"no file {path!r}") from None
    except OSError:
        raise InvalidPath(f"{path!r} leads through something that is not a folder") from None
    os.close(parent)
    return descriptor


def _open_regular(name: str, flags: int, folder: int, path: str) -> int:
    try:
        descriptor = os.open(name, flags | FILE_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        raise FileMissing(f"no file {path!r}") from None
    except OSError:
        raise InvalidPath(f"{path!r} is not a readable file") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidPath(f"{path!r} is not a regular file")
    return descriptor
