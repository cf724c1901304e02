"""Which names a server answers to.

A page elsewhere can let its own name lead to 127.0.0.1 and so talk to a server that is meant for this machine only; but
its requests still say the name. So a server on a loopback address answers to loopback's names only.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def allowed_hosts(address: str, given: Sequence[str] = ()) -> frozenset[str] | None:
    """Name the hosts that a server at that address answers to: those that are given, and its own; None is any.

    >>> sorted(allowed_hosts("127.0.0.1", ["sketch.example.org"]))
    ['127.0.0.1', '::1', 'localhost', 'sketch.example.org']
    >>> allowed_hosts("0.0.0.0") is None
    True
    """
    is_loopback = ipaddress.ip_address(address.partition("%")[0]).is_loopback
    if not is_loopback and not given:
        return None
    own = (*LOOPBACK, address) if is_loopback else (address,)
    return frozenset(host_name(name) for name in (*given, *own))


def is_allowed(headers: Iterable[tuple[bytes, bytes]], allowed: frozenset[str] | None) -> bool:
    """Tell whether a request's one Host header names one of these.

    >>> is_allowed([(b"host", b"LOCALHOST:8000")], frozenset(["localhost"]))
    True
    """
    if allowed is None:
        return True
    hosts = [value for name, value in headers if name == b"host"]
    return len(hosts) == 1 and host_name(hosts[0].decode("latin-1")) in allowed


def host_name(host: str) -> str:
    """Take the port, the brackets of IPv6 and a final dot off.

    >>> [host_name(text) for text in ("[::1]:80", "::1", "Example.org.:80", "127.0.0.1")]
    ['::1', '::1', 'example.org', '127.0.0.1']
    """
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, colon, _ = host.rpartition(":")
    return (name if colon and ":" not in name else host).rstrip(".")
