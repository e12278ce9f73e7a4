"""MkDocs' hooks (mkdocs.yml). They add the repository's Markdown files under their own paths, so that relative links work on the
site as in the repository; files that a page links to; and the generated reference."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # MkDocs imports this file by its path
    sys.path.insert(0, str(ROOT))

from mkdocs.config.defaults import MkDocsConfig  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402
from mkdocs.structure.pages import Page  # noqa: E402
from mkdocs.utils import get_relative_url  # noqa: E402

from docs.site import claims, command_line, links, markdown, repository, scenario_keys  # noqa: E402

GENERATED = {
    "reference/command-line.md": command_line.page,
    "reference/scenario-keys.md": scenario_keys.scenario_page,
    "reference/experiment-keys.md": scenario_keys.experiment_page,
    "reference/claims.md": claims.page,
}
# Browsers start no worker of a page that is a file; the search of such a page needs this program, which the theme would load from
# elsewhere. docs/site/assets has it (docs/site/README.md).
SHIM, OUR_SHIM = "https://unpkg.com/iframe-worker/shim", "iframe-worker/shim.js"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages, files that they link to, and generated pages."""
    names = repository.pages()
    for name in names:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for target in sorted(links.targets(names)):
        files.append(_linked(config, target))
    for name, page in GENERATED.items():
        files.append(File.generated(config, name, content=page()))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Change links to files into links to their pages, and GitHub's Markdown into Python-Markdown's."""
    return markdown.adapted(links.to_pages(text, page.file.src_uri))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load nothing from elsewhere."""
    return output.replace(SHIM, get_relative_url(OUR_SHIM, page.url))


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """As on_post_page: of the page for an address that there is not."""
    return output.replace(SHIM, OUR_SHIM)


def _linked(config: MkDocsConfig, target: str) -> File:
    path = ROOT / target
    if path.suffix == ".html":
        return File.generated(config, target, content=links.without_dead(path))
    if links.is_asset(path):
        return File.generated(config, target, abs_src_path=str(path))
    return File.generated(config, links.page_of(target), content=repository.shown(target))
