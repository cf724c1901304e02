"""Shows the doctests of docstrings as code on the site: an extension of griffe's, which mkdocs.yml names."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts fences around lines that begin with >>>, and what follows up to a blank line."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of whatever has one."""
        if obj.docstring is not None:
            fence = r"\g<indent>```pycon\n\g<0>\n\g<indent>```"
            obj.docstring.value = DOCTEST.sub(fence, obj.docstring.value)
