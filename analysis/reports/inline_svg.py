"""A figure of the project as part of a page: its SVG without metadata and with ids of its own, or its PNG if the SVG is large.

The SVG is matplotlib's (analysis/drawing/style.py), which escapes the texts of an experiment. Elements and attributes that such a
file does not have are refused, since markup goes into the page as it is.
"""

import base64
import re
from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup

from record.errors import RunFileError
from record.files import read_bytes

MAX_SVG_BYTES = 600_000  # of a figure with a point for each packet; its PNG is smaller, and the PDF has the points
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
ELEMENTS = {
    "svg", "g", "path", "text", "tspan", "use", "defs", "clipPath", "rect", "circle", "image", "linearGradient", "stop",
    "pattern",
}  # fmt: skip
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # Verdana's letters are as wide
# matplotlib's grey has a contrast of 4.0 on white, below the 4.5 that text needs (WCAG 2.2, 1.4.3)
LIGHT_GREY, READABLE_GREY = "#7f7f7f", "#6b6b6b"

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def inline_figure(svg: Path, anchor: str, label: str) -> Markup:
    """Markup of a figure with the name `label` for screen readers; `anchor` makes its ids unlike those of other figures."""
    if svg.stat().st_size > MAX_SVG_BYTES:
        return _picture(svg.with_suffix(".png"), label)
    try:
        root = ElementTree.parse(svg).getroot()
    except ElementTree.ParseError as problem:
        raise RunFileError(f"{svg}: is no SVG ({problem}); `manet report` draws it again") from None
    _remove_unshown(root)
    for element in root.iter():
        _check(element, svg)
        _make_unique(element, anchor)
        if element.tag == f"{{{SVG}}}text" and "style" in element.attrib:
            element.set("style", element.get("style", "").replace(LIGHT_GREY, READABLE_GREY).replace("'DejaVu Sans'", FONTS))
    width = float(root.get("width", "").removesuffix("pt")) * 4 / 3
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {"role": "img", "aria-label": label, "style": f"width: {width:.0f}px"}
    text = ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)
    return Markup(re.sub(r"\n\s*", "\n", text))


def _picture(png: Path, label: str) -> Markup:
    data = base64.b64encode(read_bytes(png)).decode()
    return Markup('<img src="data:image/png;base64,{}" alt="{}">').format(data, label)


def _remove_unshown(root: ElementTree.Element) -> None:
    """Remove metadata (with links) and the style sheet, which would hold for the whole page."""
    unshown = {f"{{{SVG}}}metadata", f"{{{SVG}}}style"}
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in unshown]:
            parent.remove(child)


def _check(element: ElementTree.Element, svg: Path) -> None:
    tag = element.tag.removeprefix(f"{{{SVG}}}")
    link = element.get(f"{{{XLINK}}}href", "#")
    if tag not in ELEMENTS or any(key.lower().startswith("on") for key in element.attrib):
        raise RunFileError(f"{svg}: holds <{tag}>, which no figure of this project has; `manet report` draws it again")
    if not link.startswith(("#", "data:image/png;base64,")):
        raise RunFileError(f"{svg}: refers to another file; `manet report` draws it again")


def _make_unique(element: ElementTree.Element, anchor: str) -> None:
    """Put the anchor before each id and each reference to one."""
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{anchor}-{value}")
        elif key == f"{{{XLINK}}}href" and value.startswith("#"):
            element.set(key, f"#{anchor}-{value[1:]}")
        elif "url(#" in value:
            element.set(key, value.replace("url(#", f"url(#{anchor}-"))
