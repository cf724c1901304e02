"""Requests made up from the server's own description, good and bad.

DABNET_API_CASES=1000 tries as many of each operation; `make fuzz-api` does.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

from dabnet.runtime import Recognizer
from dabnet.web.app import create_app
from dabnet.web.service import Service

from .conftest import Server

CASES = int(os.environ.get("DABNET_API_CASES", "15"))


def describe() -> dict[str, Any]:
    service = Service(Recognizer.load())
    with contextlib.closing(service):
        return create_app(service).openapi()


# Sent as they are, as the pictures that schemathesis knows.
schemathesis.serializer.alias(["image/bmp", "image/tiff"], "image/png")
schema = schemathesis.openapi.from_dict(describe())


@schema.parametrize()
@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
def test_the_server_keeps_to_its_description(case: schemathesis.Case[Any], server: Server) -> None:
    # Bytes may be declared a PNG and be none, and strokes may be a single point: a good type is not yet a drawing.
    lenient: list[Any] = CHECKS.get_by_names(["positive_data_acceptance"])
    case.call_and_validate(server.address.rstrip("/"), excluded_checks=lenient, timeout=20)
