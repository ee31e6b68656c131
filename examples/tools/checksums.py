# /// script
# requires-python = ">=3.9"
# dependencies = ["anyio>=4"]
#
# [tool.hostler]
# effects = "pure"
# ///
"""Checksums of files, many at once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import anyio
import hostler

Algorithm = Literal["sha256", "sha1", "md5", "blake2b"]
_AT_ONCE = 8


async def _digest(path: Path, algorithm: str) -> str:
    digest = hashlib.new(algorithm)
    async with await anyio.open_file(path, "rb") as file:
        while block := await file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


async def of_files(files: list[Path], algorithm: Algorithm = "sha256") -> dict[str, str]:
    """The checksum of each of several files.

    Args:
        files: The files.
        algorithm: Which checksum.
    """
    found: dict[str, str] = {}
    limit = anyio.CapacityLimiter(_AT_ONCE)

    async def one(path: Path) -> None:
        async with limit:
            found[str(path)] = await _digest(path, algorithm)
        hostler.progress(len(found), len(files))

    async with anyio.create_task_group() as group:
        for path in files:
            group.start_soon(one, path)
    return {str(path): found[str(path)] for path in files}


async def duplicates(folder: Path) -> list[list[str]]:
    """Groups of files in a folder, and those beneath, that have the same content.

    Args:
        folder: Where to look.
    """
    by_size: dict[int, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            by_size.setdefault(path.stat().st_size, []).append(path)
    # Only files of one size can be the same, so most are never read.
    alike = [path for group in by_size.values() if len(group) > 1 for path in group]
    groups: dict[str, list[str]] = {}
    for path, digest in (await of_files(alike)).items():
        groups.setdefault(digest, []).append(path)
    return [group for group in groups.values() if len(group) > 1]
