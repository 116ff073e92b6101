# SPDX-License-Identifier: Apache-2.0
"""The folder of compiled kernels: what is in it, whether it is sound, and bundles for other machines.

The folder is the setting `cache_dir`; the command `tensorcraft cache` shows the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import _tensorcraft as native

__all__ = ["Check", "Import", "Kernel", "Stat", "clear", "export", "import_", "list", "stat", "verify"]


@dataclass(frozen=True)
class Kernel:
    """One compiled kernel: its key, what it is, its file's size, when it was made and last used (seconds since 1970)."""

    key: str
    signature: str
    arch: str
    bytes: int
    created: int
    used: int
    compile_ms: float


@dataclass(frozen=True)
class Stat:
    """The folder as a whole; `problem` says why it is not used, and is empty where it is."""

    folder: str
    problem: str
    entries: int
    bytes: int
    limit_bytes: int
    temporary_files: int


@dataclass(frozen=True)
class Check:
    """How many kernels are good, and the files that were not and are gone."""

    good: int
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Import:
    """How many kernels of a bundle were new, and how many were there already."""

    imported: int
    already_there: int


def stat() -> Stat:
    """Size and state of the folder; reads no kernel."""
    return Stat(**native.cache_stat())


def list() -> tuple[Kernel, ...]:
    """Every kernel in the folder, the one used last first; the order of use is not changed."""
    return tuple(Kernel(**item) for item in native.cache_list())


def verify() -> Check:
    """Reads every kernel whole, and removes what is damaged or foreign; it is compiled anew when needed."""
    good, removed = native.cache_verify()
    return Check(good, tuple(removed))


def clear() -> int:
    """Removes every kernel from the folder and returns how many; those in use stay loaded."""
    return native.cache_clear()


def export(path: str | os.PathLike[str], arch: str | None = None) -> int:
    """Writes the kernels (of one architecture such as "sm_90a") into one file and returns how many.

    Raises OSError where the file cannot be written, FileNotFoundError where there is no such kernel.
    """
    return native.cache_export(os.fspath(path), arch or "")


def import_(path: str | os.PathLike[str]) -> Import:
    """Puts the kernels of a bundle into the folder; they then run without NVRTC. Import none that you would not run.

    Raises OSError for a file or folder that cannot be read or written, ValueError for a damaged bundle; nothing is changed then.
    """
    return Import(*native.cache_import(os.fspath(path)))
