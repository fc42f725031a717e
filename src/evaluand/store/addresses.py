"""The address of a store: a folder, or `SCHEME://PLACE[?catalog=postgresql://HOST/DATABASE]`.

    results                                              a folder
    s3://bucket/path?catalog=postgresql://host/database  a bucket, with the journals of open work in a database
    file:///folder?catalog=postgresql://host/database    a folder with such journals, such as one on a network drive

An address has no credentials, since it is printed, stored and typed again: those come from the environment. No part of
it is decoded, and characters that could be quoted are refused, so that each store has one address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from evaluand.core.errors import SpecError

BUCKETS: Final = {"s3": "S3", "gs": "Google Cloud Storage", "az": "Azure"}
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,221}", re.ASCII)
_PART: Final = re.compile(r"[A-Za-z0-9._=+,@~-]+", re.ASCII)
_FOLDER: Final = re.compile(r"/[^?#%\x00-\x1f\x7f]*")
_DATABASE: Final = re.compile(
    r"postgresql://(?:[A-Za-z0-9._-]+@)?(?:[A-Za-z0-9._-]*|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?/[A-Za-z0-9._-]+", re.ASCII
)
_SECRET: Final = re.compile(r"//[^/?#]*:[^/?#]*@|\b(?:password|passfile|secret\w*|token|sig)=", re.IGNORECASE)
_CATALOG: Final = "?catalog="


class BucketPath(PurePosixPath):
    """A place in a bucket.

    Example:
        >>> BucketPath("s3://bucket/path") / "runs"
        BucketPath('s3://bucket/path/runs')
    """

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    def as_posix(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Address:
    """Where a store is that is more than a folder.

    Attributes:
        place: the bucket and the path in it; or the folder, if only its journals are elsewhere.
        catalog: the database with the journals of open work; empty if there is none.
    """

    place: BucketPath | Path
    catalog: str = ""

    def __str__(self) -> str:
        place = str(self.place) if isinstance(self.place, BucketPath) else f"file://{self.place}"
        return place + (f"{_CATALOG}{self.catalog}" if self.catalog else "")


Place: TypeAlias = Path | Address
"""What `--store` takes."""


def parse_place(text: str) -> Place:
    """The place that a text names: a folder, unless it has the form of an address.

    Raises:
        SpecError: it has the form of an address, and is none; it has a password.

    Example:
        >>> parse_place("C:/results").as_posix(), str(parse_place("s3://bucket/evals"))
        ('C:/results', 's3://bucket/evals')
    """
    found = _ADDRESS.fullmatch(text)
    if (found or _CATALOG in text) and _SECRET.search(text):
        raise SpecError(
            "the address of a store has a password or a token, which would be printed and stored; leave it out, and set"
            " the variables of the service: PGPASSWORD, AWS_SECRET_ACCESS_KEY, …"
        )
    if found is None:
        if _CATALOG in text:
            raise SpecError(f"{text}: a folder with a catalog is written file:///FOLDER{_CATALOG}…, with its full path")
        return Path(text)
    scheme, rest = found[1].lower(), found[2]
    place, has_catalog, catalog = rest.partition(_CATALOG)
    if has_catalog and not _DATABASE.fullmatch(catalog):
        raise SpecError(
            f"{text}: the catalog is not of the form postgresql://[USER@]HOST[:PORT]/DATABASE; other settings, such as"
            " PGSSLMODE, come from the environment"
        )
    if scheme == "file":
        return Address(_read_folder(place, text), catalog) if has_catalog else _read_folder(place, text)
    if scheme not in BUCKETS:
        known = ", ".join(f"{each}://" for each in (*BUCKETS, "file"))
        raise SpecError(f"{text}: a store is a folder or begins with {known}")
    return Address(_read_bucket(scheme, place, text), catalog)


def local_folder(place: Place) -> Path | None:
    """The folder of this machine in which a store is; None for a bucket."""
    if isinstance(place, Address):
        return None if isinstance(place.place, BucketPath) else place.place
    return place


def is_address(text: str) -> bool:
    """Whether a text has the form of an address; a drive such as `C:/` is none.

    Example:
        >>> is_address("s3://bucket"), is_address("C://results"), is_address("results")
        (True, False, False)
    """
    return _ADDRESS.fullmatch(text) is not None


def _read_folder(place: str, text: str) -> Path:
    if not _FOLDER.fullmatch(place):
        raise SpecError(
            f"{text}: file:// needs a full path without ?, # and %; give a folder as it is, without file://"
        )
    return Path(place)


def _read_bucket(scheme: str, place: str, text: str) -> BucketPath:
    bucket, *parts = place.removesuffix("/").split("/")
    if not _BUCKET.fullmatch(bucket):
        raise SpecError(f"{text}: {bucket!r} cannot be the name of a bucket")
    for part in parts:
        if not _PART.fullmatch(part) or part in (".", ".."):
            raise SpecError(
                f"{text}: {part!r} cannot be a part of the path of a store; use letters, digits and . _ = + , @ ~ -"
            )
    return BucketPath(f"{scheme}://{'/'.join([bucket, *parts])}")
