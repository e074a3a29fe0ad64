"""Prepares the documents for MkDocs.

Documents are written for viewers of the repository: relative links lead to any of its files, and a folder is shown by
its README.md. On the site, files outside docs/ that are linked are below `repository/`.
"""

import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)(?P<path>[^)\s#]+)")


def linked(page: Path, target: str) -> Path:
    """The file that the link `target` of `page` leads to."""
    path = (page.parent / target).resolve()
    return path / "README.md" if path.is_dir() else path


def site_path(path: Path) -> str:
    return str(path.relative_to(DOCS) if path.is_relative_to(DOCS) else "repository" / path.relative_to(ROOT))


def on_config(config):
    def expand(item):
        if isinstance(item, list):
            return [expand(part) for part in item]
        if isinstance(item, dict):
            return {title: expand(part) for title, part in item.items()}
        if item.endswith("/"):
            return [item + path.name for path in sorted((DOCS / item).glob("*.md"))]
        return item

    config["nav"] = expand(config["nav"])
    return config


def on_files(files, config):
    pages = [Path(file.abs_src_path) for file in files.documentation_pages()]
    added = set()
    while pages:
        page = pages.pop()
        for match in LINK.finditer(page.read_text()):
            path = linked(page, match["path"])
            if path.is_relative_to(DOCS) or not path.is_relative_to(ROOT) or not path.is_file() or path in added:
                continue
            added.add(path)
            files.append(File.generated(config, site_path(path), abs_src_path=str(path)))
            if path.suffix == ".md":
                pages.append(path)
    assets = [Path(__file__).with_name("diagrams.mjs"), *(ROOT / ".build/mermaid").iterdir()]
    for path in assets:
        folder = "assets/mermaid" if path.parent.name == "mermaid" else "assets"
        files.append(File.generated(config, f"{folder}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    source = Path(page.file.abs_src_path)

    def target(match):
        path = linked(source, match["path"])
        if not path.is_relative_to(ROOT):
            return match[0]
        return os.path.relpath(site_path(path), os.path.dirname(page.file.src_uri) or ".")

    return LINK.sub(target, markdown)
