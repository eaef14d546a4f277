"""What mkdocs does beside its own (`make docs`): links from docs/ to the rest of the repository."""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:bench|charts|demo|examples|manifests|operator)/[^)#]*)\)")
ROOT = Path(__file__).resolve().parents[1]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """They become the path itself: the site holds no code. A path that there is not fails the build."""

    def path(found: re.Match[str]) -> str:
        text, target = found.groups()
        if not (ROOT / target).exists():
            raise PluginError(f"{page.file.src_uri} links to {target}, which is not there")
        return f"`{target}`" if text.strip("`").rstrip("/") in target else f"{text} (`{target}`)"

    return _OUTSIDE.sub(path, markdown)
