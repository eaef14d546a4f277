"""`spottrain checkpoints`, on a directory and on S3."""

import pytest

from spottrain.checkpoint import layout, location
from tests.cli.shelf import Shelf


def forked(place: Shelf) -> dict[int, layout.StepDir]:
    """Attempt a saves 10, 20 and, too late, 30; b went on from 20, saved 25 and began an upload of 26."""
    first = place.begin("a")
    made = {step: place.save(first, step) for step in (10, 20)}
    second = place.begin("b")
    made[25] = place.save(second, 25)
    made[26] = place.save(second, 26, commit=False)
    late = layout.StepDir(30, "a", f"{30:04x}")
    place.save(first, 30, commit=False)
    data = place.store.get(made[20].commit_key) or b""
    text = data.decode().replace('"step": 20', '"step": 30').replace(made[20].nonce, late.nonce)
    place.store.put_if_absent(late.commit_key, text.encode())
    made[30] = late
    return made


def break_file(
    place: Shelf, directory: layout.StepDir, name: str = "model", data: bytes = b"weights XX"
) -> None:
    place.store.delete([directory.key(name)])
    place.store.put_if_absent(directory.key(name), data)


def test_ls_shows_what_a_restore_would_take_first_and_what_nobody_follows_last(place: Shelf) -> None:
    made = forked(place)
    listed = place.json("ls")
    assert [(one["step"], one["place"], one["parent"], one["problem"]) for one in listed] == [
        (25, "latest", False, None),
        (20, "trail", True, None),
        (10, "trail", False, None),
        (30, "aside", False, None),
        (26, "aside", False, "never committed"),
    ]
    newest = listed[0]
    assert (newest["name"], newest["bytes"], newest["files"]) == (made[25].name, 11, 2)
    assert (newest["time"], newest["saveSeconds"], newest["blockedSeconds"]) == (
        "2026-01-01T00:00:00Z",
        1.25,
        0.5,
    )
    assert (newest["attemptID"], newest["attempt"], newest["worldSize"]) == ("b", 11, 1)
    table = place.run("ls").out.splitlines()
    assert " ".join(table[0].split()) == "STEP PLACE TIME SIZE FILES SAVE ATTEMPT NAME PROBLEM"
    assert table[1].split() == [
        "25",
        "latest",
        "2026-01-01T00:00:00Z",
        "11",
        "B",
        "2",
        "1.2",
        "s",
        "11",
        made[25].name,
    ]


def test_ls_names_what_is_damaged_and_the_next_best_is_the_latest(place: Shelf) -> None:
    made = forked(place)
    break_file(place, made[25], data=b"short")
    listed = place.json("ls")
    assert [(one["step"], one["place"], one["problem"]) for one in listed[:2]] == [
        (25, "trail", "model has 5 bytes instead of 10"),
        (20, "latest", None),
    ]


def test_an_empty_place_is_no_error_and_a_missing_one_is(place: Shelf) -> None:
    said = place.run("ls")
    assert (said.code, said.out) == (0, f"no checkpoints in {place.where.uri}\n")
    assert place.json("ls") == []
    gone = "file:///no/such/volume" if place.where.uri.startswith("file") else "s3://no-such-bucket-here/tr"
    said = place.run("ls", uri=gone)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("spottrain: ")
    assert "create" in said.err


def test_the_folder_of_an_independent_job_is_told_from_an_empty_place(place: Shelf) -> None:
    inner = Shelf(location.Location(f"{place.where.uri}/0", place.where.endpoint, folders=2), "")
    inner.save(inner.begin("a"), 5)
    said = place.run("ls")
    assert said.code == 1
    assert said.err.endswith(f"name an index's, such as {place.where.uri}/0\n")
    assert [one["step"] for one in inner.json("ls")] == [5]


def test_verify_reads_the_latest_unless_told_otherwise(place: Shelf) -> None:
    made = forked(place)
    said = place.run("verify")
    assert (said.code, said.out) == (0, f"{made[25].name}: sound (11 B)\n")
    assert [one["step"] for one in place.json("verify", "--checkpoint", 10)] == [10]


def test_verify_finds_other_bytes_of_the_same_size(place: Shelf) -> None:
    made = forked(place)
    break_file(place, made[20])
    said = place.run("verify", "--all")
    assert said.code == 1
    assert f"{made[20].name}: model has another checksum than when it was saved" in said.out.splitlines()
    assert f"{made[10].name}: sound (11 B)" in said.out.splitlines()
    assert place.run("verify", "--checkpoint", 10).code == 0


def test_diff_tells_files_and_versions_apart_without_reading_them(place: Shelf) -> None:
    first = place.begin("a")
    place.save(first, 10, {"model": "one", "same": "s"})
    place.save(first, 20, {"model": "two!", "same": "s", "more": "m"})
    said = place.run("diff", 10, 20, "-o", "json")
    assert said.code == 1
    assert [one["what"] for one in said.json] == ["file model", "file more", "version of torch"]
    assert said.json[1]["first"] == "-"
    assert said.json[2] == {"what": "version of torch", "first": "2.10", "second": "2.20"}
    assert place.run("diff", 10, 10).out == "no difference\n"
    assert place.run("diff", 10, 10).code == 0


def test_prune_removes_what_retention_would_and_a_dry_run_nothing(place: Shelf) -> None:
    first = place.begin("a")
    for step in (1, 2, 3, 4):
        place.save(first, step)
    would = place.json("prune", "--keep", 2, "--dry-run")
    assert [one["step"] for one in would] == [1, 2]
    assert place.committed() == [1, 2, 3, 4]
    said = place.run("prune", "--keep", 2)
    assert said.code == 0
    assert said.out.splitlines()[-1] == "removed 2 of them, 20 B"
    assert place.committed() == [3, 4]
    assert place.run("prune", "--keep", 2).out == "nothing to remove\n"


def test_prune_keeps_the_newest_and_whatever_was_gone_on_from(place: Shelf) -> None:
    made = forked(place)
    assert place.run("prune", "--keep", 1).code == 0
    assert place.committed() == [20, 25]
    assert [one["name"] for one in place.json("ls")] == [made[25].name, made[20].name, made[26].name]
    refused = place.run("prune", "--keep", 0)
    assert refused.code == 2
    assert "argument --keep: at least 1, not 0" in refused.err


def test_prune_keeps_the_newest_sound_one_below_a_damaged_one(place: Shelf) -> None:
    first = place.begin("a")
    for step in (1, 2, 3):
        directory = place.save(first, step)
    break_file(place, directory, data=b"short")
    assert place.run("prune", "--keep", 1).code == 0
    assert place.committed() == [2, 3]


def test_a_copy_is_what_a_new_job_goes_on_from(place: Shelf) -> None:
    made = forked(place)
    said = place.run("copy", place.other, "--checkpoint", 20)
    assert (said.code, said.out) == (0, f"copied {made[20].name} to {place.other}\n")
    there = Shelf(location.Location(place.other, place.where.endpoint), "")
    assert [(one["step"], one["place"]) for one in there.json("ls")] == [(20, "latest")]
    assert there.run("verify").code == 0
    record = there.begin("c")
    assert record.parent is not None
    assert record.parent.directory == made[20]


def test_a_copy_goes_to_an_empty_place_only(place: Shelf) -> None:
    forked(place)
    Shelf(location.Location(place.other, place.where.endpoint), "").begin("d")
    said = place.run("copy", place.other)
    assert (said.code, said.err) == (
        1,
        f"spottrain: {place.other} holds checkpoints already: name an empty place\n",
    )


def test_damaged_bytes_are_not_copied(place: Shelf) -> None:
    made = forked(place)
    break_file(place, made[25])
    said = place.run("copy", place.other)
    assert said.code == 1
    assert "model has another checksum" in said.err
    assert Shelf(location.Location(place.other, place.where.endpoint), "").json("ls") == []


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("70", "there is no checkpoint '70'; steps that are there: 25, 20, 10, 30, 26"),
        ("26", "cannot be used: never committed"),
    ],
)
def test_a_name_that_names_none_or_nothing_usable_is_refused(place: Shelf, wanted: str, why: str) -> None:
    forked(place)
    said = place.run("copy", place.other, "--checkpoint", wanted)
    assert said.code == 1
    assert why in said.err


def test_a_step_that_was_saved_twice_needs_more_of_its_name(place: Shelf) -> None:
    first = place.save(place.begin("a"), 20)
    second = place.save(place.begin("b"), 20)
    said = place.run("verify", "--checkpoint", 20)
    assert (said.code, said.out) == (1, "")
    assert said.err == f"spottrain: '20' may be any of {second.name}, {first.name}: write more of the name\n"
    assert place.run("verify", "--checkpoint", first.name[:12]).out == f"{first.name}: sound (11 B)\n"


def test_what_is_no_uri_is_told_what_one_looks_like() -> None:
    said = Shelf(location.Location(""), "").run("ls", uri="ck/tr")
    assert said.code == 1
    assert said.err == (
        "spottrain: 'ck/tr' is no checkpoint URI: "
        "write s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///directory\n"
    )
