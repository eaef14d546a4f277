"""Image archives, build contexts and pip's settings inside a build."""

import json
import tarfile
from pathlib import Path

import pytest

from lab import archive, buildah, context, golden, images
from lab.errors import LabError


def layer(folder: Path, text: str = "x") -> Path:
    """A layer with one file."""
    (folder / "file").write_text(text)
    with tarfile.open(folder / "layer.tar", "w") as tar:
        tar.add(folder / "file", arcname="file")
    return folder / "layer.tar"


def test_archive_says_what_was_written_to_it(tmp_path: Path) -> None:
    """Name and identity come back."""
    made = archive.write(tmp_path / "a.tar", "docker.io/lab/x:1", {"Cmd": ["x"]}, [layer(tmp_path)])
    assert archive.describe(tmp_path / "a.tar") == made


def test_archive_names_the_layers_by_their_digests(tmp_path: Path) -> None:
    """What a runtime verifies when it unpacks them."""
    path = layer(tmp_path)
    archive.write(tmp_path / "a.tar", "docker.io/lab/x:1", {}, [path])
    with tarfile.open(tmp_path / "a.tar") as tar:
        manifest = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        image = json.load(tar.extractfile(manifest[0]["Config"]))  # type: ignore[arg-type]
    assert image["rootfs"]["diff_ids"] == [f"sha256:{archive.sha256(path)}"]


@pytest.mark.parametrize(
    "text", ["acme/x:1", "x", "docker.io/acme/x", "docker.io/Acme/x:1", "docker.io/:1", ""]
)
def test_image_without_registry_or_tag_is_refused_before_it_is_built(tmp_path: Path, text: str) -> None:
    """Nothing is read of the folder, which has no Dockerfile."""
    with pytest.raises(LabError, match=r"must have registry and tag, like docker\.io/acme/trainer:1"):
        images.built(tmp_path, text)


@pytest.mark.parametrize(
    "text", ["docker.io/spottrain/operator:0.1.0", "localhost:5000/x:a_b-1.2", "ghcr.io/a/b-c/d_e:1"]
)
def test_image_with_registry_and_tag_is_taken(text: str) -> None:
    """As the kubelet looks it up."""
    assert archive.check_reference(text) == text


def test_one_image_under_two_tags_is_had_under_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when two builds of the same files differ in their tag alone."""
    monkeypatch.setenv("SPOTTRAIN_CACHE", str(tmp_path / "cache"))
    tags = ("docker.io/lab/x:1", "docker.io/lab/x:2")
    layers = [layer(tmp_path)]
    made = [archive.write(tmp_path / f"{tag[-1]}.tar", tag, {"Cmd": ["x"]}, layers) for tag in tags]
    assert made[0].identity == made[1].identity
    for image in made:
        assert golden.add(image)
    had = golden.lacking(tmp_path / "a new disk")
    assert {tag: archive.describe(Path(path)).reference for tag, path in had.items()} == {
        tag: tag for tag in tags
    }


@pytest.mark.parametrize("body", [b"", b"no archive"], ids=["empty", "text"])
def test_file_that_is_no_image_is_refused_in_one_sentence(tmp_path: Path, body: bytes) -> None:
    """It says how to make one."""
    (tmp_path / "x.tar").write_bytes(body)
    with pytest.raises(LabError, match="is no image archive: write one with"):
        archive.describe(tmp_path / "x.tar")


def test_missing_archive_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """The same for a wrong path."""
    with pytest.raises(LabError, match="is no image archive"):
        archive.describe(tmp_path / "nowhere.tar")


def test_archive_with_two_names_is_refused(tmp_path: Path) -> None:
    """Which one to load would be a guess."""
    archive.write(tmp_path / "a.tar", "docker.io/lab/x:1", {}, [layer(tmp_path)])
    with tarfile.open(tmp_path / "a.tar") as one, tarfile.open(tmp_path / "b.tar", "w") as two:
        manifest = json.load(one.extractfile("manifest.json"))  # type: ignore[arg-type]
        manifest[0]["RepoTags"].append("docker.io/lab/y:1")
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        two.add(tmp_path / "manifest.json", arcname="manifest.json")
    with pytest.raises(LabError, match="holds 2 image names: save exactly one"):
        archive.describe(tmp_path / "b.tar")


def test_only_copied_files_of_the_context_count() -> None:
    """Flags, other stages and continued lines are understood."""
    dockerfile = "FROM a AS b\nCOPY --chown=1:1 x y \\\n  z /dest/\nCOPY --from=b /q /q\nADD w /\nRUN COPY\n"
    assert context.sources(dockerfile) == ["x", "y", "z", "w"]


def test_json_form_of_copy_is_refused() -> None:
    """Rather than silently building without the files."""
    with pytest.raises(LabError, match="without brackets"):
        context.sources('COPY ["a", "/b"]')


def test_context_is_the_dockerfile_and_what_it_copies(tmp_path: Path) -> None:
    """Caches and everything else stay out."""
    (tmp_path / "src" / "__pycache__").mkdir(parents=True)
    for name in ("Dockerfile", "README.md", "secret", "src/a.py", "src/__pycache__/a.py", "src/b.pyc"):
        (tmp_path / name).write_text("COPY README.md src /x/\n")
    assert context.collect(tmp_path) == [Path("Dockerfile"), Path("README.md"), Path("src/a.py")]


def test_copy_of_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    """As a build would, only sooner."""
    (tmp_path / "Dockerfile").write_text("COPY nothing /\n")
    with pytest.raises(LabError, match="copies nothing, which does not exist"):
        context.collect(tmp_path)


def test_digest_changes_with_content_mode_and_tag(tmp_path: Path) -> None:
    """And with nothing else, such as times."""
    (tmp_path / "a").write_text("1")
    first = context.digest(tmp_path, [Path("a")], "tag")
    (tmp_path / "a").write_text("1")
    same = context.digest(tmp_path, [Path("a")], "tag")
    (tmp_path / "a").chmod(0o755)
    runnable = context.digest(tmp_path, [Path("a")], "tag")
    (tmp_path / "a").write_text("2")
    other = context.digest(tmp_path, [Path("a")], "tag")
    assert first == same
    assert len({first, runnable, other, context.digest(tmp_path, [Path("a")], "tag2")}) == 4


def test_pip_listing_is_read_and_the_environment_wins() -> None:
    """As pip itself decides."""
    listing = "global.index-url='https://a/simple'\n:env:.timeout='9'\nglobal.timeout='1'\n"
    assert buildah.parse_pip_config(listing) == {"index-url": "https://a/simple", "timeout": "9"}


def test_only_settings_that_hold_in_a_container_are_passed_on() -> None:
    """Paths of this machine do not exist there."""
    text = buildah.pip_settings(
        {"index-url": "https://a/simple", "find-links": "/opt/wheels", "cert": "/root/ca.pem"},
        bundle="/etc/ssl/bundle.crt",
    )
    assert text.split() == [
        *("[global]", "cert", "=", "/etc/ssl/bundle.crt", "disable-pip-version-check", "=", "1"),
        *("index-url", "=", "https://a/simple"),
    ]
