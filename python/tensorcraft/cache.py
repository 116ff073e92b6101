# SPDX-License-Identifier: Apache-2.0
"""The folder of compiled kernels: what is in it, whether it is sound, and bundles for other machines.

The folder is the setting `cache_dir`; the command `tensorcraft cache` shows the same.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from . import _tensorcraft as native

__all__ = ["Check", "Import", "Kernel", "Stat", "clear", "export", "import_", "list", "stat", "verify"]


class Kernel(NamedTuple):
    """One compiled kernel."""

    key: str  # 64 hexadecimal digits, the name of its file
    signature: str  # readable: operator, variant, dtypes, Config, architecture
    arch: str  # "sm_90a"
    bytes: int  # of its file
    created: int  # seconds since 1970
    used: int  # last, in seconds since 1970
    compile_ms: float  # that the compiler took


class Stat(NamedTuple):
    """The folder as a whole."""

    folder: str  # empty if there is no home folder and no setting
    problem: str  # why the folder is not used; empty if it is
    entries: int  # how many kernels it holds
    bytes: int  # of them all
    limit_bytes: int  # the setting `cache_limit_bytes`
    temporary_files: int  # being written, or left by a process that was killed


class Check(NamedTuple):
    """What `verify` found."""

    good: int  # how many kernels are sound
    removed: tuple[str, ...]  # names of the files that were not, and are gone


class Import(NamedTuple):
    """What `import_` did."""

    imported: int  # how many kernels of the bundle were new
    already_there: int  # how many were not


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


def export(
    path: str | os.PathLike[str], arch: str | None = None, recorded: str | os.PathLike[str] | None = None
) -> int:
    """Writes the kernels (of one architecture such as "sm_90a") into one file and returns how many.

    recorded: only those that runs with the setting `kernel_record` noted in this file.

    Raises OSError where the file cannot be written, FileNotFoundError where there is no such kernel.
    """
    return native.cache_export(path, arch, recorded)


def import_(path: str | os.PathLike[str]) -> Import:
    """Puts the kernels of a bundle into the folder; they then run without NVRTC. Import none that you would not run.

    Raises OSError for a file or folder that cannot be read or written, ValueError for a damaged bundle; nothing is changed then.
    """
    return Import(*native.cache_import(path))
