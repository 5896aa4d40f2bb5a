"""What a download makes of objects before it fetches anything: files, names, and when an address ends."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_sumerender.download_index import Entry, Key, about, load
from kubectl_sumerender.download_plan import Lacking, Output, extension, named, outputs_of
from kubectl_sumerender.download_report import size
from kubectl_sumerender.errors import WrongUseError
from kubectl_sumerender.expiry import expires_at

SIGNATURE = "S3CRET"
URL = f"https://media.sume.example/a/1.mp4?X-Amz-Signature={SIGNATURE}"


def body(name: str, *outputs: dict[str, Any], namespace: str = "films", **status: Any) -> dict[str, Any]:
    succeeded = {"type": "Succeeded", "status": "True", "reason": "Completed", "message": "The job has completed."}
    known = {"terminal": True, "state": "Completed", "jobID": f"job_{name}", "conditions": [succeeded]}
    return {
        "metadata": {"namespace": namespace, "name": name, "uid": f"uid-{name}"},
        "spec": {},
        "status": {**known, "outputs": list(outputs), **status},
    }


def video(url: str = URL, name: str = "video", **more: Any) -> dict[str, Any]:
    return {"name": name, "url": url, "contentType": "video/mp4", **more}


def outputs(*bodies: dict[str, Any]) -> list[Output]:
    found: list[Output] = []
    for each in bodies:
        offer = outputs_of(each)
        assert isinstance(offer, list), offer
        found += offer
    return found


def files(*bodies: dict[str, Any], index: dict[Key, Entry] | None = None, by_namespace: bool = False) -> list[str]:
    return [wanted.file for wanted in named(outputs(*bodies), index or {}, by_namespace=by_namespace)]


def test_a_file_is_called_after_its_render() -> None:
    assert files(body("intro", video())) == ["intro.mp4"]


def test_several_outputs_are_numbered_in_their_order() -> None:
    made = body("intro", video(), {"name": "image", "url": "https://m.example/2.PNG"}, {"name": "file", "url": URL})
    assert files(made) == ["intro-1.mp4", "intro-2.png", "intro-3.mp4"]


def test_a_name_that_is_taken_grows_and_stays() -> None:
    two, one = body("a", video(), video(name="video-2")), body("a-1", video())
    plan = named(outputs(one, two), {}, by_namespace=False)
    names = [each.file for each in plan]
    assert len(set(names)) == 3
    assert [name for name in names if "_" in name] == [names[2]]
    index = {each.output.key: _entry(each.output.key, each.file) for each in plan}
    for chosen in ((one,), (two,), (two, one)):
        again = named(outputs(*chosen), index, by_namespace=False)
        assert {each.output.key: each.file for each in again}.items() <= {
            each.output.key: each.file for each in plan
        }.items()


def test_another_job_under_the_same_name_never_takes_the_file_of_the_first() -> None:
    first = outputs(body("intro", video()))[0]
    index = {first.key: _entry(first.key, "intro.mp4")}
    (file,) = files(body("intro", video(), jobID="job_other"), index=index)
    assert file.startswith("intro_")


def test_namespaces_have_folders_of_their_own() -> None:
    made = body("intro", video(), namespace="a"), body("intro", video(), namespace="b")
    assert files(*made, by_namespace=True) == ["a/intro.mp4", "b/intro.mp4"]
    assert len(set(files(*made))) == 2


@pytest.mark.parametrize("name", ["x" * 253, "../../etc/passwd", "", "a/b", "-"])
def test_no_name_leads_out_of_the_folder_or_is_too_long(name: str) -> None:
    (file,) = files(body(name, video()))
    assert "/" not in file
    assert not file.startswith(".")
    assert len(file) < 200


def test_a_render_cannot_take_the_index() -> None:
    (file,) = files(body("index", {"name": "file", "url": "https://m.example/index.json"}))
    assert file != "index.json"


@given(names=st.lists(st.from_regex(r"[a-z0-9]{1,2}(-[123])?", fullmatch=True), unique=True), count=st.integers(1, 3))
def test_no_two_outputs_share_a_file(names: list[str], count: int) -> None:
    made = [body(name, *(video(name=f"video-{number}") for number in range(count))) for name in names]
    found = files(*made)
    assert len(found) == len(set(found)) == len(names) * count


@pytest.mark.parametrize(
    ("content_type", "path", "expected"),
    [
        ("video/mp4", "1.bin", "mp4"),
        ("Video/MP4; codecs=avc1", "1", "mp4"),
        ("video/quicktime", "", "mov"),
        ("audio/mpeg", "", "mp3"),
        ("image/jpeg", "1.jpeg", "jpg"),
        ("", "clip.WEBM", "webm"),
        ("application/octet-stream", "clip.webm", "webm"),
        ("application/x-unheard-of", "clip.mkv", "mkv"),
        ("", "clip", "bin"),
        ("", "clip.part", "bin"),
        ("", "clip.about", "bin"),
        ("", "clip.a%2Fb", "bin"),
        ("", "clip.waytoolongtobeone", "bin"),
        ("", "..", "bin"),
    ],
)
def test_extensions(content_type: str, path: str, expected: str) -> None:
    assert extension(content_type, f"https://m.example/a/{path}?x=y.exe") == expected


@pytest.mark.parametrize(
    ("given_body", "why"),
    [
        (body("a", terminal=False, conditions=[]), "has not ended yet (nothing has looked at it). Wait: kubectl"),
        (
            body("a", terminal=False, conditions=[{"type": "Succeeded", "status": "Unknown", "reason": "Queued"}]),
            "has not ended yet (Queued). Wait: kubectl sumerender wait -n films a",
        ),
        (
            body(
                "a",
                message="The job failed: no.",
                conditions=[{"type": "Succeeded", "status": "False", "reason": "JobFailed"}],
            ),
            "made no file (JobFailed: The job failed: no.)",
        ),
        (body("a"), "has no outputs on record (none listed)"),
        (
            body(
                "a",
                conditions=[
                    {"type": "Succeeded", "status": "True", "reason": "Completed"},
                    {"type": "OutputsAvailable", "status": "False", "reason": "ResultGone"},
                ],
            ),
            "has no outputs on record (ResultGone)",
        ),
    ],
)
def test_what_has_no_file_says_why(given_body: dict[str, Any], why: str) -> None:
    offer = outputs_of(given_body)
    assert isinstance(offer, Lacking)
    assert offer.ref == "films/a"
    assert offer.why.startswith(why)


def test_an_address_is_in_no_repr() -> None:
    plan = named(outputs(body("intro", video())), {}, by_namespace=False)
    assert SIGNATURE not in repr(plan)


NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
NOON_S = int(NOON.timestamp())


@pytest.mark.parametrize(
    ("query", "told", "expected"),
    [
        ("", "", None),
        ("", "2026-07-01T12:00:00Z", NOON),
        ("X-Amz-Date=20260701T110000Z&X-Amz-Expires=3600&X-Amz-Signature=s", "", NOON),
        ("X-Goog-Date=20260701T110000Z&X-Goog-Expires=3600", "", NOON),
        (f"Expires={NOON_S}&Signature=s&Key-Pair-Id=k", "", NOON),
        ("se=2026-07-01T12%3A00%3A00Z&sig=s", "", NOON),
        (f"X-Sume-Expires={NOON_S}", "", NOON),
        (f"Expires={NOON_S}", "2026-07-02T00:00:00Z", NOON),
        (f"Expires={NOON_S}", "2026-07-01T11:00:00Z", datetime(2026, 7, 1, 11, tzinfo=UTC)),
        ("Expires=never&exp=-5&se=", "soon", None),
        ("Expires=99999999999999999999&exp=0&X-Amz-Expires=3600", "", None),
        ("X-Amz-Date=20260701T110000Z&X-Amz-Expires=99999999999", "", None),
        ("exp=²", "", None),
    ],
)
def test_when_an_address_ends(query: str, told: str, expected: datetime | None) -> None:
    assert expires_at(f"https://m.example/1.mp4?{query}", told) == expected


def test_an_index_is_written_before_a_file_gets_its_name(tmp_path: Path) -> None:
    index, part = load(tmp_path), tmp_path / "intro.mp4.part"
    part.write_bytes(b"x")
    about(part).write_text("{}")
    key = outputs(body("intro", video()))[0].key
    index.add(_entry(key, "intro.mp4"), part)
    index.flush()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "intro.mp4"]
    assert load(tmp_path).entries == {key: _entry(key, "intro.mp4")}
    (line,) = json.loads((tmp_path / "index.json").read_text())["files"]
    assert (line["name"], line["job"], line["file"], line["sha256"]) == ("intro", "job_intro", "intro.mp4", "0" * 64)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"files": 5}',
        '{"files": [{"name": "a"}]}',
        *(
            json.dumps({"files": [dict.fromkeys(("namespace", "name", "job", "output", "sha256"), "a") | more]})
            for more in (
                {"file": "../a", "sizeBytes": 1},
                {"file": "/etc/passwd", "sizeBytes": 1},
                {"file": "a/b/c", "sizeBytes": 1},
                {"file": ".ssh/keys", "sizeBytes": 1},
                {"file": "a", "sizeBytes": "many"},
            )
        ),
    ],
)
def test_an_index_of_another_hand_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(WrongUseError, match="is no index that this command wrote"):
        load(tmp_path)


def test_ten_thousand_files_do_not_mean_ten_thousand_indexes(tmp_path: Path) -> None:
    index, key = load(tmp_path), outputs(body("intro", video()))[0].key
    versions = set()
    for number in range(50):
        part = tmp_path / f"{number}.part"
        part.touch()
        each = Key(namespace=key.namespace, name=str(number), job=key.job, output=key.output)
        index.add(_entry(each, f"{number}.mp4"), part)
        versions.add((tmp_path / "index.json").stat().st_mtime_ns)
    index.flush()
    assert len(versions) < 10
    assert len(load(tmp_path).entries) == len(list(tmp_path.glob("*.mp4"))) == 50


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (12_300_000, "12.3 MB"), (5 * 10**13, "50.0 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def _entry(key: Key, file: str) -> Entry:
    return Entry(key=key, file=file, size_bytes=1, sha256="0" * 64)
