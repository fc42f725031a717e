"""Addresses of stores: what they name, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluand.core.errors import SpecError
from evaluand.store.addresses import Address, BucketPath, is_address, local_folder, parse_place
from evaluand.store.opening import open_store


@pytest.mark.parametrize(
    "text", ["results", ".evaluand", "/var/results", "C:/results", "C:\\results", "a%3Fb", "a b/c#d"]
)
def test_a_path_is_a_folder(text: str) -> None:
    assert parse_place(text) == Path(text)
    assert not is_address(text)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_an_address_names_a_bucket_a_path_and_a_catalog(scheme: str) -> None:
    text = f"{scheme}://team-data/evals/2026?catalog=postgresql://me@db.example:5433/evals"
    place = parse_place(text)
    assert isinstance(place, Address)
    assert (str(place), str(place.place)) == (text, f"{scheme}://team-data/evals/2026")
    assert place.catalog == "postgresql://me@db.example:5433/evals"
    assert local_folder(place) is None


def test_a_final_slash_does_not_make_another_store() -> None:
    assert parse_place("s3://bucket/evals/") == parse_place("s3://bucket/evals")


def test_file_names_a_folder_with_a_catalog_elsewhere() -> None:
    place = parse_place("file:///mnt/evals?catalog=postgresql://db/evals")
    assert isinstance(place, Address)
    assert local_folder(place) == Path("/mnt/evals")
    assert parse_place("file:///mnt/evals") == Path("/mnt/evals")


@pytest.mark.parametrize(
    "path", ["a%3Fb", "a%2Fb", "a?b", "a#b", "a//b", "../b", "a/./b", "a b", "a?Catalog=x", "a\\b", "a\n", "é"]
)
def test_a_path_that_could_be_quoted_is_refused(path: str) -> None:
    with pytest.raises(SpecError, match="cannot be a part of the path"):
        parse_place(f"s3://bucket/{path}")


@pytest.mark.parametrize(
    "text", ["http://host/x", "s4://bucket", "s3://", "s3:///path", "s3://_/path", "file://host/x"]
)
def test_what_is_no_store_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_place(text)


@pytest.mark.parametrize(
    "catalog",
    [
        *("", "db", "mysql://db/x", "postgresql://db", "postgresql://db/x?sslmode=disable", "postgresql://db/x#y"),
        *("postgresql://db/x&b=c", "postgresql://db:port/x", "postgresql://db/x y", "postgresql://a/b,c/d"),
    ],
)
def test_a_catalog_is_a_database_of_postgresql(catalog: str) -> None:
    with pytest.raises(SpecError, match="catalog"):
        parse_place(f"s3://bucket/path?catalog={catalog}")


@pytest.mark.parametrize(
    "text",
    [
        *("s3://key:hunter2@bucket/path", "s3://bucket?catalog=postgresql://me:hunter2@db/evals"),
        *("results?catalog=postgresql://me:hunter2@db/evals", "s3://bucket/x?password=hunter2"),
        "file:///x?catalog=postgresql://db/evals?password=hunter2",
    ],
)
def test_a_password_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(SpecError, match="PGPASSWORD") as caught:
        parse_place(text)
    assert "hunter2" not in str(caught.value)


def test_a_folder_with_a_catalog_needs_its_form() -> None:
    with pytest.raises(SpecError, match="file:///FOLDER"):
        parse_place("results?catalog=postgresql://db/evals")


def test_places_in_a_bucket_are_written_as_they_are_read() -> None:
    path = BucketPath("s3://bucket/path")
    assert str(path / "runs" / "x.json") == "s3://bucket/path/runs/x.json"
    assert (path / "runs").relative_to(path).parts == ("runs",)


def test_a_path_opens_a_folder(tmp_path: Path) -> None:
    assert open_store(tmp_path).root == tmp_path
    assert open_store(str(tmp_path)).ids("runs") == []
