"""Published files from the net: fetched once into the folder of downloads, and checked."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from .errors import TouchstoneError
from .files import sha256_of
from .paths import data_root


def download_folder(name: str) -> Path:
    """Where the files of a data set lie: below TOUCHSTONE_DATA, or in the user's cache."""
    import pooch  # here and below, so that only a run with published data pays for the import

    return (data_root() or Path(pooch.os_cache("touchstone"))) / name


def download(url: str, checksum: str, target: Path) -> None:
    """Fetch a file once, and refuse it where it is not what its checksum says.

    Args:
        url: where the file is.
        checksum: a SHA-256 in hexadecimal, or `md5:...` where its publisher states no other.
        target: where it goes; a file that lies there and fits the checksum is left alone.

    Raises:
        TouchstoneError: the file cannot be had, or is another one.
    """
    import pooch

    pooch.get_logger().setLevel("WARNING")
    known = checksum if ":" in checksum else f"sha256:{checksum}"
    kind = "MD5" if known.startswith("md5:") else "SHA-256"
    algorithm, _, digest = known.partition(":")
    if target.is_file() and pooch.file_hash(str(target), alg=algorithm) == digest:
        return
    # In a folder of its own, for a killed download leaves a file there; the next one removes it.
    part = target.with_name(f".{target.name}.fetching")
    shutil.rmtree(part, ignore_errors=True)
    try:
        pooch.retrieve(url, known_hash=known, path=part, fname=target.name)
        os.replace(part / target.name, target)
    except (OSError, ValueError) as error:
        is_other = isinstance(error, ValueError) and "hash" in str(error)
        reason = f"is not what its {kind} says" if is_other else error
        raise TouchstoneError(
            f"could not fetch {target}: {url} {reason}; put the file there by hand, "
            "or try again with a connection"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_files(folder: Path, sha256: Mapping[str, str], commit: str, command: str) -> None:
    """Refuse a folder in which a file differs from the published one.

    Args:
        folder: where the files lie.
        sha256: by name of file the SHA-256 of what was published.
        commit: of the publisher's repository, for the message.
        command: what fetches a file again, for the message.

    Raises:
        TouchstoneError: naming the first file with another SHA-256; it is left as it is.
    """
    for name, expected in sha256.items():
        if sha256_of(folder / name) != expected:
            raise TouchstoneError(
                f"{folder / name} is not the published file (its SHA-256 differs from that of "
                f"commit {commit}); delete it and run `{command}`"
            )
