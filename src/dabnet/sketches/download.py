"""Fetch a file over HTTP: resumed, retried, checked, and never there half-written.

The bytes go to NAME.part; NAME.part.json says which version of the file they are of. A later request asks for the rest
of that version only (Range with If-Range), so that a file that changed on the server starts over. The part becomes NAME
in one step, once its length and its checksum are right.
"""

from __future__ import annotations

import base64
import http.client
import re
import socket
import ssl
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from dabnet.errors import DownloadError
from dabnet.sketches.alone import only_writer
from dabnet.sketches.download_part import CHUNK, Origin, Part, Sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

    Progress = Callable[[int, int | None], None]

MAX_BYTES = 64 << 30
"""Bytes that a file may have if the caller does not say: a server must not fill the disk."""
WORTHWHILE = 1 << 20
"""Bytes that an attempt must add for the failures before it to be forgiven; so the attempts come to an end."""
LONGEST_PAUSE = 60.0
_pause = time.sleep


@dataclass(frozen=True)
class Download:
    """A file that is there, whole; `resumed_from` is how many of its bytes an earlier call had left."""

    path: Path
    bytes: int
    sha256: str
    resumed_from: int = 0
    already_there: bool = False


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    expected_bytes: int | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    timeout: float = 30.0,
    attempts: int = 4,
) -> Download:
    """Fetch `url` into the file `target`, going on with what an earlier call left.

    A file that is already there is checked, but not fetched again. The folder is made if it is not there.

    Args:
        url: An http or https address.
        target: The file to write. Nothing has this name before all of it is there.
        sha256: The checksum that the file must have, in hexadecimal digits.
        md5: The same where only an MD5 is published: it shows damage, though not malice. If neither is given, the MD5
            that Google Cloud Storage sends is checked.
        expected_bytes: The length that the file must have.
        max_bytes: The length past which it is refused.
        progress: Called with the bytes that are there and the bytes in all (None if the server does not say). The first
            falls only if the server makes it start over.
        timeout: Seconds of silence after which the connection counts as broken.
        attempts: How often to try in a row without getting on; the pauses between grow.
    """
    _check_address(url)
    target = Path(target)
    checksums = {name: value.lower() for name, value in (("sha256", sha256), ("md5", md5)) if value}
    part = Part(url, target, expected_bytes, max_bytes)
    with _disk_errors(target):
        if target.exists():
            return _check_existing(target, checksums, expected_bytes)
        target.parent.mkdir(parents=True, exist_ok=True)
    with only_writer(target):  # two that append to one part would spoil it
        with _disk_errors(target):
            part.recall()
        _fetch(part, progress, timeout, attempts)
        with _disk_errors(target):
            _check_part(part, checksums)
            part.become(target)
    return Download(target, part.have, part.sums.digest("sha256"), part.resumed_from)


class _CutError(Exception):
    """An attempt that failed in a way that may pass; `pause` is the seconds that the server asked for."""

    def __init__(self, reason: str, pause: float | None = None, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.pause = pause
        self.unreachable = unreachable


class _StaleError(Exception):
    """The part is not the beginning of what the server has now."""


class _Redirects(HTTPRedirectHandler):
    """Follow a redirect to http or https, but from https only to https."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme != "https" and scheme != urlsplit(req.full_url).scheme:
            fp.close()
            raise DownloadError(f"cannot download {req.full_url}: the server points to {newurl}, which is not safe.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(part: Part, progress: Progress | None, timeout: float, attempts: int) -> None:
    """Ask for what is missing until all is there, or until that fails too often."""
    opener = build_opener(_Redirects)
    failures, best, reached = 0, part.have, False
    while part.have != part.total:
        try:
            with _ask(opener, part, timeout) as response:
                reached = True
                _take_up(response, part)
                _copy(response, part, progress)
                return
        except _StaleError:
            part.forget()
        except _CutError as cut:
            failures = 1 if part.have >= best + WORTHWHILE else failures + 1
            best = max(best, part.have)
            if failures >= attempts or (cut.unreachable and not reached):
                raise DownloadError(_say_what_is_kept(part, cut, failures)) from None
            _pause(min(2.0 ** (failures - 1) if cut.pause is None else cut.pause, LONGEST_PAUSE))


def _ask(opener: OpenerDirector, part: Part, timeout: float) -> http.client.HTTPResponse:
    """Send the request, for the rest only if there is a part; sort what goes wrong by whether it may pass."""
    request = Request(part.url, headers={"User-Agent": "dabnet"})
    if part.validator:
        request.add_header("Range", f"bytes={part.have}-")
        request.add_header("If-Range", part.validator)
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=timeout)
        return response
    except HTTPError as error:
        with error:
            raise _read_refusal(error, part) from None
    except (OSError, http.client.HTTPException, UnicodeError) as problem:
        reason = problem.reason if isinstance(problem, URLError) else problem
        if isinstance(reason, ssl.SSLCertVerificationError | http.client.InvalidURL | UnicodeError):
            raise DownloadError(f"cannot download {part.url}: {reason}; check the address and the clock.") from None
        unreachable = isinstance(reason, socket.gaierror | ConnectionRefusedError)
        raise _CutError(_words(reason), unreachable=unreachable) from None


def _read_refusal(error: HTTPError, part: Part) -> Exception:
    if error.code == 416 and part.validator:
        return _StaleError()
    answer = f"the server answered {error.code} {' '.join(str(error.reason).split())}"
    if error.code == 429 or error.code >= 500:
        seconds = error.headers.get("Retry-After", "")
        return _CutError(answer, float(seconds) if re.fullmatch("[0-9]{1,9}", seconds) else None)
    return DownloadError(f"cannot download {part.url}: {answer}; check the address, and whether the file moved.")


def _take_up(response: http.client.HTTPResponse, part: Part) -> None:
    """Go on with the part if the answer is its rest; start over if the answer is the whole file."""
    headers = response.headers
    if response.status == 206 and part.validator:
        served = re.fullmatch(r"bytes ([0-9]+)-[0-9]+/([0-9]+)", headers.get("Content-Range", ""))
        version = headers.get("ETag" if part.validator.startswith('"') else "Last-Modified", part.validator)
        if not served or (int(served[1]), int(served[2]), version) != (part.have, part.total, part.validator):
            raise _StaleError
    elif response.status == 200:
        total = response.length
        with _disk_errors(part.path):
            part.restart(Origin(part.url, total, _find_validator(headers) if total else None, _find_md5(headers)))
    else:
        raise DownloadError(f"cannot download {part.url}: the server answered {response.status}, where 200 was due.")
    if part.total is not None:
        part.check_length(part.total)


def _copy(response: http.client.HTTPResponse, part: Part, progress: Progress | None) -> None:
    """Add what comes to the part, up to the announced length, or to the longest that is allowed."""
    with _disk_errors(part.path):
        file = part.path.open("ab", buffering=0)  # so what has come is in the file, whatever happens next
    with file:
        while True:
            if progress:
                progress(part.have, part.total)
            missing = CHUNK if part.total is None else part.total - part.have
            try:
                chunk = response.read1(min(CHUNK, missing)) if missing else b""
            except (OSError, http.client.HTTPException) as problem:
                raise _CutError(_words(problem)) from None
            if not chunk:
                break
            with _disk_errors(part.path):
                part.append(file, chunk)
                if part.have > part.most:
                    part.check_length(part.have)
    if part.total not in (None, part.have):
        raise _CutError("the connection ended too early")


def _find_validator(headers: Message) -> str | None:
    """Return what If-Range may carry (RFC 9110): a strong ETag, else the date of change if it is past by a second."""
    tag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
    if tag.startswith('"') and tag.isascii() and tag.isprintable():
        return tag
    try:
        age = parsedate_to_datetime(headers.get("Date", "")) - parsedate_to_datetime(modified)
    except (TypeError, ValueError):
        return None
    return modified if age >= timedelta(seconds=1) and modified.isascii() and modified.isprintable() else None


def _find_md5(headers: Message) -> str | None:
    """Read the MD5 of the whole file that Google Cloud Storage sends, unless it is that of a packed form of it."""
    sent = re.search(r"\bmd5=([A-Za-z0-9+/]{22}==)", " ".join(headers.get_all("x-goog-hash", [])))
    packed = headers.get("x-goog-stored-content-encoding", "identity") != "identity"
    return base64.b64decode(sent[1]).hex() if sent and not packed else None


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        raise DownloadError(f"'{url}' is not an address that can be fetched: give one with http:// or https://.")


def _check_existing(target: Path, checksums: dict[str, str], expected: int | None) -> Download:
    sums = Sums.of_file(target)
    wrong = sums.find_wrong(checksums)
    if expected not in (None, sums.count):
        wrong = f"it has {sums.count:,} bytes, not {expected:,}"
    if wrong:
        raise DownloadError(f"{target} is there already, but {wrong}: delete it to fetch it anew.")
    return Download(target, sums.count, sums.digest("sha256"), already_there=True)


def _check_part(part: Part, checksums: dict[str, str]) -> None:
    part.check_length(part.have)
    if not checksums and part.origin and part.origin.md5:
        checksums = {"md5": part.origin.md5}
    if wrong := part.sums.find_wrong(checksums):
        part.discard()
        hint = "it was deleted; run the same command again, and if that gives the same, ask for the right checksum"
        raise DownloadError(f"{part.path.stem} came out wrong: {wrong}; {hint}.")


def _say_what_is_kept(part: Part, cut: _CutError, failures: int) -> str:
    kept = "run the same command again later"
    if part.validator:
        kept = f"{part.have:,} of {part.total:,} bytes are kept, and the same command goes on from there"
    if cut.unreachable:
        return f"cannot reach {urlsplit(part.url).hostname} ({cut}): check the network connection; {kept}."
    return f"cannot download {part.url}: {cut} (attempt {failures}); {kept}."


def _words(problem: object) -> str:
    return getattr(problem, "strerror", None) or str(problem) or type(problem).__name__


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Put what the disk refuses into a sentence; the part stays."""
    try:
        yield
    except OSError as problem:
        hint = "make room or choose another folder, then run the same command again; what was fetched is kept"
        raise DownloadError(f"cannot write {path}: {_words(problem)}; {hint}.") from None
