from __future__ import annotations

import base64
import hashlib
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request

import numpy as np
import pytest

from dabnet.errors import DabnetError, DownloadError
from dabnet.sketches.download import WORTHWHILE, _Redirects, download

DATA = np.random.default_rng(0).bytes(300_000)
OTHER = np.random.default_rng(1).bytes(300_000)
SHA256 = hashlib.sha256(DATA).hexdigest()


@dataclass
class Site:
    """What the server has and how it misbehaves; and what was asked of it and sent."""

    data: bytes = DATA
    tag: str | None = '"one"'
    modified: str | None = None
    ranges: bool = True
    announce: int | None = -1  # the length it claims: -1 is the truth, None says nothing
    cuts: list[int] = field(default_factory=list)  # bytes after which each answer breaks off, as long as there are any
    statuses: list[int] = field(default_factory=list)  # refusals, before it answers
    headers: dict[str, str] = field(default_factory=dict)
    content_range: str | None = None
    surplus: bytes = b""  # sent and announced with a part of the file, though it is not of the file
    location: str = ""
    url: str = ""
    asked: list[str | None] = field(default_factory=list)  # the Range of each request
    conditions: list[str | None] = field(default_factory=list)  # and its If-Range
    sent: list[int] = field(default_factory=list)  # bytes of each answer

    def change(self, data: bytes, tag: str) -> None:
        self.data, self.tag = data, tag


class Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *arguments: object) -> None:
        self.site = site
        super().__init__(*arguments)  # type: ignore[arg-type]

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        site, data = self.site, self.site.data
        asked = self.headers["Range"]
        site.asked.append(asked)
        site.conditions.append(self.headers["If-Range"])
        if site.statuses:
            self.send_response(site.statuses.pop(0))
            self.send_header("Location", site.location)
            return self.finish_headers()
        start, surplus = 0, b""
        if asked and site.ranges and self.headers["If-Range"] in (site.tag, site.modified):
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(data):
                self.send_response(416)
                return self.finish_headers()
            surplus = site.surplus
            self.send_response(206)
            self.send_header("Content-Range", site.content_range or f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        if site.announce is not None:
            length = len(data) if site.announce == -1 else site.announce
            self.send_header("Content-Length", str(length - start + len(surplus)))
        self.finish_headers()
        body = data[start : start + site.cuts.pop(0)] if site.cuts else data[start:] + surplus
        site.sent.append(len(body))
        self.wfile.write(body)
        return None

    def finish_headers(self) -> None:
        for name, value in (("ETag", self.site.tag), ("Last-Modified", self.site.modified), *self.site.headers.items()):
            if value:
                self.send_header(name, value)
        self.end_headers()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, site)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_port}/a/file.zip"
        yield site
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses that would have been made; and no proxy may stand between."""
    made: list[float] = []
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("dabnet.sketches.download._pause", made.append)
    return made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "file.zip"


def names(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def leave_partial(site: Site, target: Path, length: int = 100_000) -> None:
    """Make a first call that breaks off after so many bytes."""
    site.cuts = [length]
    with pytest.raises(DownloadError, match=f"{length:,} of 300,000 bytes are kept"):
        download(site.url, target, attempts=1)
    assert names(target) == ["file.zip.part", "file.zip.part.json"]


def test_a_file_arrives_bit_for_bit_and_nothing_else_is_left(site: Site, target: Path) -> None:
    done = download(site.url, target, sha256=SHA256.upper(), expected_bytes=len(DATA))
    assert target.read_bytes() == DATA
    assert names(target) == ["file.zip"]
    assert (done.path, done.bytes, done.sha256) == (target, len(DATA), SHA256)
    assert (done.resumed_from, done.already_there) == (0, False)
    assert site.asked == [None]


@pytest.mark.parametrize("data", [b"", b"x", DATA])
@pytest.mark.parametrize("announce", [-1, None])
def test_a_file_of_any_length_arrives_whether_announced_or_not(
    site: Site, target: Path, data: bytes, announce: int | None
) -> None:
    site.data, site.announce = data, announce
    assert download(site.url, target).bytes == len(data)
    assert target.read_bytes() == data


def test_a_cut_connection_is_taken_up_where_it_broke(site: Site, target: Path, pauses: list[float]) -> None:
    site.cuts = [70_000, 30_000, 1]
    assert download(site.url, target, sha256=SHA256).resumed_from == 0
    assert target.read_bytes() == DATA
    assert site.asked == [None, "bytes=70000-", "bytes=100000-", "bytes=100001-"]
    assert sum(site.sent) == len(DATA)
    assert pauses == [1, 2, 4]


def test_a_second_call_goes_on_where_the_first_gave_up(site: Site, target: Path) -> None:
    leave_partial(site, target)
    done = download(site.url, target, sha256=SHA256)
    assert done.resumed_from == 100_000
    assert target.read_bytes() == DATA
    assert names(target) == ["file.zip"]
    assert site.sent == [100_000, 200_000]
    assert site.conditions == [None, '"one"']


def test_a_date_serves_to_resume_where_there_is_no_etag(site: Site, target: Path) -> None:
    site.tag, site.modified = None, "Tue, 07 Aug 2012 10:00:00 GMT"
    leave_partial(site, target)
    assert download(site.url, target, sha256=SHA256).resumed_from == 100_000
    assert target.read_bytes() == DATA


@pytest.mark.parametrize(("tag", "dated"), [(None, False), ('W/"weak"', False), (None, True)])
def test_without_a_strong_mark_of_the_version_it_starts_over(
    site: Site, target: Path, tag: str | None, dated: bool
) -> None:
    site.tag = tag
    if dated:
        site.modified = formatdate(time.time() + 10, usegmt=True)  # so new that it may yet change within its second
    site.cuts = [100_000]
    with pytest.raises(DownloadError, match="run the same command again later"):
        download(site.url, target, attempts=1)
    assert download(site.url, target).resumed_from == 0
    assert target.read_bytes() == DATA
    assert site.asked == [None, None]


def test_a_server_that_ignores_ranges_makes_it_start_over(site: Site, target: Path) -> None:
    site.ranges = False
    leave_partial(site, target)
    assert download(site.url, target, sha256=SHA256).resumed_from == 0
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("length", [50_000, 100_000, 300_000])
def test_a_file_that_changed_between_two_calls_is_not_glued(site: Site, target: Path, length: int) -> None:
    leave_partial(site, target)
    site.change(OTHER[:length], '"two"')
    assert download(site.url, target).resumed_from == 0
    assert target.read_bytes() == OTHER[:length]


def test_a_file_that_changed_within_a_call_is_not_glued(site: Site, target: Path) -> None:
    site.cuts = [100_000]
    started: list[int] = []

    def progress(done: int, total: int | None) -> None:
        if done == 100_000 and not started:
            started.append(done)
            site.change(OTHER, '"two"')

    download(site.url, target, progress=progress)
    assert target.read_bytes() == OTHER


@pytest.mark.parametrize(
    "content_range", ["bytes 0-299999/300000", "bytes 100000-299998/299999", "bytes 100000-299999/*", "nonsense"]
)
def test_an_answer_that_does_not_fit_the_part_makes_it_start_over(site: Site, target: Path, content_range: str) -> None:
    leave_partial(site, target)
    site.content_range = content_range
    assert download(site.url, target, sha256=SHA256).resumed_from == 0
    assert target.read_bytes() == DATA


def test_a_new_version_under_an_accepted_range_is_not_glued(site: Site, target: Path) -> None:
    leave_partial(site, target)
    site.data, site.headers["ETag"] = OTHER, '"two"'
    site.modified, site.tag = '"one"', None  # takes the range for the old version, but says that it is the new one
    download(site.url, target)
    assert target.read_bytes() == OTHER


def test_no_more_is_added_to_a_part_than_is_missing(site: Site, target: Path) -> None:
    leave_partial(site, target)
    site.surplus = b"x" * 1000
    assert download(site.url, target, sha256=SHA256).resumed_from == 100_000


def test_a_file_that_shrank_makes_it_start_over(site: Site, target: Path) -> None:
    leave_partial(site, target)
    site.data = OTHER[:90_000]  # of the same ETag: the range does not exist
    download(site.url, target)
    assert target.read_bytes() == OTHER[:90_000]
    assert site.asked == [None, "bytes=100000-", None]


def test_a_part_of_another_address_is_not_used(site: Site, target: Path) -> None:
    leave_partial(site, target)
    assert download(site.url + "?other", target).resumed_from == 0
    assert site.asked == [None, None]


@pytest.mark.parametrize("notes", ["", "{", "[]", "null", '{"url": 1}', '{"url": "x", "total": "y"}'])
def test_a_part_with_damaged_notes_is_not_used(site: Site, target: Path, notes: str) -> None:
    leave_partial(site, target)
    target.with_name("file.zip.part.json").write_text(notes)
    assert download(site.url, target, sha256=SHA256).resumed_from == 0


def test_a_part_longer_than_the_file_is_not_used(site: Site, target: Path) -> None:
    leave_partial(site, target)
    target.with_name("file.zip.part").write_bytes(DATA + b"x")
    assert download(site.url, target, sha256=SHA256).resumed_from == 0


def test_a_whole_part_needs_no_server(site: Site, target: Path) -> None:
    leave_partial(site, target)
    target.with_name("file.zip.part").write_bytes(DATA)
    assert download(site.url, target, sha256=SHA256).resumed_from == len(DATA)
    assert target.read_bytes() == DATA
    assert site.asked == [None]


def test_an_interrupt_loses_nothing(site: Site, target: Path) -> None:
    kept = []

    def interrupt(done: int, total: int | None) -> None:
        if done > 100_000:
            kept.append(done)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(site.url, target, progress=interrupt)
    assert not target.exists()
    assert target.with_name("file.zip.part").read_bytes() == DATA[: kept[0]]
    assert download(site.url, target, sha256=SHA256).resumed_from == kept[0]
    assert target.read_bytes() == DATA


def test_attempts_come_to_an_end(site: Site, target: Path, pauses: list[float]) -> None:
    site.cuts = [0] * 100
    with pytest.raises(DownloadError, match="ended too early"):
        download(site.url, target, attempts=6)
    assert len(site.asked) == 6
    assert pauses == [1, 2, 4, 8, 16]


def test_attempts_come_to_an_end_though_each_starts_over_and_gets_far(site: Site, target: Path) -> None:
    site.data, site.ranges = bytes(3 * WORTHWHILE), False
    site.cuts = [2 * WORTHWHILE] * 100
    with pytest.raises(DownloadError, match="ended too early"):
        download(site.url, target, attempts=3)
    assert len(site.asked) == 3


def test_failures_are_forgiven_when_it_gets_on(site: Site, target: Path) -> None:
    site.data = bytes(5 * WORTHWHILE)
    site.cuts = [0, WORTHWHILE, 0, WORTHWHILE, 0, WORTHWHILE]
    assert download(site.url, target, attempts=3).bytes == 5 * WORTHWHILE


def test_a_connection_that_falls_silent_is_cut(site: Site, target: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(DownloadError, match=r"timed out \(attempt 2\)"):
            download(url, target, timeout=0.02, attempts=2)


def test_progress_only_rises_and_ends_at_the_whole(site: Site, target: Path) -> None:
    leave_partial(site, target)
    site.cuts = [50_000]
    seen: list[tuple[int, int | None]] = []
    download(site.url, target, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert (seen[0], seen[-1]) == ((100_000, 300_000), (300_000, 300_000))


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_wrong_checksum_deletes_the_part_and_names_both(site: Site, target: Path, kind: str) -> None:
    wrong, right = (hashlib.new(kind, data).hexdigest() for data in (OTHER, DATA))
    with pytest.raises(DownloadError, match=f"its {kind} is {right}, not {wrong}; it was deleted"):
        download(site.url, target, sha256=wrong if kind == "sha256" else None, md5=wrong if kind == "md5" else None)
    assert names(target) == []


@pytest.mark.parametrize("pattern", ["crc32c=AAAAAA==,md5={}", "md5={}"])
def test_the_checksum_that_google_sends_is_checked(site: Site, target: Path, pattern: str) -> None:
    md5 = {data: base64.b64encode(hashlib.md5(data).digest()).decode() for data in (DATA, OTHER)}
    site.headers["x-goog-hash"] = pattern.format(md5[OTHER])
    with pytest.raises(DownloadError, match=f"its md5 is {hashlib.md5(DATA).hexdigest()}"):
        download(site.url, target)
    assert names(target) == []
    site.headers["x-goog-hash"] = pattern.format(md5[DATA])
    leave_partial(site, target)
    assert download(site.url, target).resumed_from == 100_000


def test_the_checksum_that_the_caller_gives_counts_more_than_the_server_s(site: Site, target: Path) -> None:
    site.headers["x-goog-hash"] = "md5=" + base64.b64encode(hashlib.md5(OTHER).digest()).decode()
    assert download(site.url, target, sha256=SHA256).sha256 == SHA256


def test_a_checksum_of_the_packed_form_is_not_checked(site: Site, target: Path) -> None:
    md5 = base64.b64encode(hashlib.md5(OTHER).digest()).decode()
    site.headers |= {"x-goog-hash": f"md5={md5}", "x-goog-stored-content-encoding": "gzip"}
    assert download(site.url, target).sha256 == SHA256


@pytest.mark.parametrize("announce", [-1, None])
@pytest.mark.parametrize("expected", [299_999, 300_001, 0])
def test_a_wrong_length_deletes_the_part(site: Site, target: Path, announce: int | None, expected: int) -> None:
    site.announce = announce
    seen: list[tuple[int, int | None]] = []
    with pytest.raises(DownloadError, match=f"bytes where {expected:,} were expected"):
        download(site.url, target, expected_bytes=expected, progress=lambda *numbers: seen.append(numbers))
    assert names(target) == []
    assert bool(seen) == (announce is None)  # what is announced is refused before it is fetched


@pytest.mark.parametrize("announce", [-1, None])
def test_a_file_past_the_limit_is_refused_and_deleted(site: Site, target: Path, announce: int | None) -> None:
    site.announce = announce
    seen: list[tuple[int, int | None]] = []
    with pytest.raises(DownloadError, match="where at most 1,000 were expected"):
        download(site.url, target, max_bytes=1000, progress=lambda *numbers: seen.append(numbers))
    assert names(target) == []
    assert (len(DATA), None) not in seen  # it stops long before the end


def test_a_server_that_announces_too_much_is_not_believed(site: Site, target: Path) -> None:
    site.announce = 400_000
    with pytest.raises(DownloadError, match="300,000 of 400,000 bytes are kept"):
        download(site.url, target, attempts=1)
    assert not target.exists()


def test_no_more_is_taken_than_announced(site: Site, target: Path) -> None:
    site.announce = 1000
    assert download(site.url, target).bytes == 1000
    assert target.read_bytes() == DATA[:1000]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_one_sentence_at_once(site: Site, target: Path, status: int) -> None:
    site.statuses = [status]
    with pytest.raises(DownloadError, match=f"cannot download {site.url}: the server answered {status} ") as caught:
        download(site.url, target)
    assert str(caught.value).count("\n") == 0
    assert isinstance(caught.value, DabnetError)
    assert len(site.asked) == 1


@pytest.mark.parametrize("status", [204, 206, 304, 416])
def test_an_answer_that_makes_no_sense_is_an_error(site: Site, target: Path, status: int) -> None:
    site.statuses = [status]
    with pytest.raises(DownloadError, match=f"the server answered {status}"):
        download(site.url, target)


def test_a_busy_server_is_asked_again(site: Site, target: Path, pauses: list[float]) -> None:
    site.statuses = [500, 503, 429]
    assert download(site.url, target).sha256 == SHA256
    assert pauses == [1, 2, 4]


@pytest.mark.parametrize(("wish", "pause"), [("7", 7), ("0", 0), ("86400", 60), ("soon", 1)])
def test_the_pause_that_the_server_asks_for_is_made_within_reason(
    site: Site, target: Path, pauses: list[float], wish: str, pause: int
) -> None:
    site.statuses, site.headers = [503], {"Retry-After": wish}
    download(site.url, target)
    assert pauses == [pause]


def test_a_server_that_stays_busy_is_given_up(site: Site, target: Path) -> None:
    site.statuses = [503] * 10
    with pytest.raises(DownloadError, match="answered 503 Service Unavailable"):
        download(site.url, target)
    assert len(site.asked) == 4


def test_a_redirect_is_followed_and_the_rest_asked_for_there(site: Site, target: Path) -> None:
    leave_partial(site, target)
    site.statuses, site.location = [302], site.url + "?elsewhere"
    assert download(site.url, target).resumed_from == 100_000
    assert site.asked == [None, "bytes=100000-", "bytes=100000-"]


@pytest.mark.parametrize("location", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
def test_a_redirect_away_from_http_is_refused(site: Site, target: Path, location: str) -> None:
    site.statuses, site.location = [302], location
    with pytest.raises(DownloadError, match=location):
        download(site.url, target)
    assert not target.exists()


def test_a_redirect_from_https_to_http_is_refused() -> None:
    with pytest.raises(DownloadError, match="points to http://a/y, which is not safe"):
        _Redirects().redirect_request(Request("https://a/x"), io.BytesIO(), 302, "", HTTPMessage(), "http://a/y")


def test_endless_redirects_are_one_sentence(site: Site, target: Path) -> None:
    site.statuses, site.location = [302] * 50, site.url
    with pytest.raises(DownloadError, match="infinite loop") as caught:
        download(site.url, target)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_down_is_named_at_once(target: Path, pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(DownloadError, match=r"cannot reach 127\.0\.0\.1 \(.*refused\): check the network connection"):
        download(f"http://127.0.0.1:{port}/x", target)
    assert pauses == []


def test_a_host_that_is_not_found_is_named(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **keywords: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(DownloadError, match=r"cannot reach sketches\.example \(Name or service not known\): check"):
        download("https://sketches.example/x.zip", target)


def test_a_network_that_drops_out_midway_is_waited_for(
    site: Site, target: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    site.cuts = [100_000]
    really = socket.getaddrinfo

    def drop_out(*arguments: object, **keywords: object) -> object:
        if len(pauses) in (1, 2):
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return really(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", drop_out)
    assert download(site.url, target, attempts=4).sha256 == SHA256
    assert sum(site.sent) == len(DATA)


@pytest.mark.parametrize(
    "url",
    ["", "x.zip", "file:///etc/hostname", "ftp://host/x", "http://", "http://host:0x/", "http://[::1/", "http://h/a b",
     "http://hé/", "http://h/\n", "http://a..b/"],
)  # fmt: skip
def test_what_is_no_web_address_is_refused(target: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="address"):
        download(url, target)


def test_a_folder_that_cannot_be_made_is_one_sentence(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match=r"cannot write .*choose another folder"):
        download(site.url, tmp_path / "file" / "x.zip")


@pytest.mark.parametrize("room", [120_000, 299_999])
def test_a_full_disk_keeps_what_is_there(site: Site, target: Path, room: int) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(DownloadError, match=r"cannot write .*file\.zip\.part: File too large; make room"):
            download(site.url, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert target.with_name("file.zip.part").read_bytes() == DATA[:room]
    assert download(site.url, target, sha256=SHA256).resumed_from == room


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_without_space_is_one_sentence(site: Site, target: Path) -> None:
    target.parent.mkdir()
    target.with_name("file.zip.part").symlink_to("/dev/full")
    with pytest.raises(DownloadError, match="No space left on device; make room"):
        download(site.url, target)


def test_a_file_that_is_there_is_not_fetched_again(site: Site, target: Path) -> None:
    download(site.url, target)
    for sha256 in (None, SHA256):
        again = download(site.url, target, sha256=sha256)
        assert (again.already_there, again.bytes, again.sha256) == (True, len(DATA), SHA256)
    assert len(site.asked) == 1


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"md5": "0" * 32}, {"expected_bytes": 5}])
def test_a_wrong_file_that_is_there_is_not_touched(site: Site, target: Path, wrong: dict[str, str]) -> None:
    download(site.url, target)
    with pytest.raises(DownloadError, match=r"is there already, but .* delete it to fetch it anew"):
        download(site.url, target, **wrong)  # type: ignore[arg-type]
    assert target.read_bytes() == DATA


def test_the_notes_name_the_address_and_the_version(site: Site, target: Path) -> None:
    leave_partial(site, target)
    notes = json.loads(target.with_name("file.zip.part.json").read_text())
    assert (notes["url"], notes["validator"], notes["total"]) == (site.url, '"one"', 300_000)
