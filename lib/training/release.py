"""Pretrained models as archives for a release: `touchstone pretrain --pack`, or `make weights`.

    <name>.tar.gz   the files of `outputs/pretrained/<name>/`, without dates and owners, so that the
                    same model gives the same archive
    SHA256SUMS      as `sha256sum --check` reads it

An archive is unpacked into `outputs/pretrained/`, where any stage 02 finds the model.
"""

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from ..core.errors import TouchstoneError
from ..core.files import atomic_path, sha256_of, write_atomic

SUMS = "SHA256SUMS"


def pack(folders: Iterable[Path], out: Path) -> list[Path]:
    """Write an archive of each folder, and the sums of all; each archive is read again.

    Args:
        folders: of models that are whole.
        out: where the archives go.

    Returns:
        The paths of the archives.

    Raises:
        TouchstoneError: an archive does not hold what its folder holds.
    """
    out.mkdir(parents=True, exist_ok=True)
    archives = []
    for folder in folders:
        path = out / f"{folder.name}.tar.gz"
        with atomic_path(path) as part:
            _write(folder, part)
            check(part, folder)
        archives.append(path)
    lines = [f"{sha256_of(path)}  {path.name}\n" for path in archives]
    write_atomic(out / SUMS, "".join(lines))
    return archives


def check(archive: Path, folder: Path) -> None:
    """Compare every file of an archive with its folder, byte for byte.

    Raises:
        TouchstoneError: naming the first file that differs, is missing or is too many.
    """
    with tarfile.open(archive, "r:gz") as packed:
        kept = {member.name: packed.extractfile(member) for member in packed if member.isfile()}
        expected = {f"{folder.name}/{path.name}": path for path in _files(folder)}
        if odd := sorted(kept.keys() ^ expected.keys()):
            raise TouchstoneError(f"{archive} and {folder} differ in {odd[0]}; pack it again")
        for name, path in expected.items():
            content = kept[name]
            if content is None or content.read() != path.read_bytes():
                raise TouchstoneError(f"{archive}: {name} is not that of {folder}; pack it again")


def _write(folder: Path, archive: Path) -> None:
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as packed,
    ):
        for path in _files(folder):
            member = tarfile.TarInfo(f"{folder.name}/{path.name}")
            content = path.read_bytes()
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())
