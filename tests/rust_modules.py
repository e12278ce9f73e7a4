"""Which source file of a Rust crate uses which, and the cycles among them.

A file uses another when it names it, or an item declared there, by a path from `crate::`, `super::`, `self::` or a submodule of
its own. A path is followed through `pub use` to the file that declares the item; that a module re-exports items of its own
submodules is no use of them. Comments and literals do not count (but paths in serde's attributes), tests do. Unsupported:
macros that make paths, `#[path]`, globs of re-exports.
"""

import re
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]  # the path below `crate`; () is lib.rs, or main.rs where there is no library

# Raw strings, strings, characters (not lifetimes), then comments: the first that begins wins.
_NO_CODE = re.compile(r'r(#*)".*?"\1|"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\\\'])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
_INLINE = re.compile(r"\bmod\s+(\w+)\s*\{")
_REEXPORT = r"\bpub(?:\([^)]*\))?\s+use\s+"


def cycles(src: Path) -> list[list[str]]:
    """The strongly connected components of more than one file, as sorted names relative to `src`, the largest first.

    A file and its own submodules are one component by design and not listed.
    """
    graph = imports(src)
    found = [component for component in components(graph) if len(component) > 1 and not is_one_family(component)]
    names = {module: path.relative_to(src).as_posix() for module, path in modules(src).items()}
    return sorted((sorted(names[module] for module in component) for component in found), key=lambda c: (-len(c), c))


def is_one_family(component: set[Module]) -> bool:
    """Is it one module, not the crate's root, with submodules of its own?"""
    parent = min(component, key=len)
    return bool(parent) and all(module[: len(parent)] == parent for module in component)


def modules(src: Path) -> dict[Module, Path]:
    """Every file of the library, or of the program where there is no library, by its module path."""
    root = next(path for path in (src / "lib.rs", src / "main.rs") if path.exists())
    others = (path for path in src.rglob("*.rs") if path.parent != src / "bin" and path.name not in ("lib.rs", "main.rs"))
    return {(): root} | {_module_of(path.relative_to(src)): path for path in others}


def _module_of(path: Path) -> Module:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "mod" else parts


def imports(src: Path) -> dict[Module, set[Module]]:
    """For each module the modules that it uses, itself left out."""
    files = modules(src)
    code = {module: _NO_CODE.sub(_path_in_literal, path.read_text()) for module, path in files.items()}
    named = {module: list(_named_paths(module, text, files)) for module, text in code.items()}
    reexports = {module: dict(_reexports(module, text, files)) for module, text in code.items()}
    return {module: {_declaring_module(path, files, reexports) for path in paths} - {module} for module, paths in named.items()}


def _path_in_literal(no_code: re.Match[str]) -> str:
    path = re.fullmatch(r'"(crate::[\w:]+)"', no_code[0])
    return path[1] if path else " "


def _named_paths(module: Module, text: str, files: dict[Module, Path]) -> Iterator[Module]:
    """Every path of the crate in a file's code, from the crate's root."""
    children = "|".join(sorted(other[-1] for other in files if other and other[:-1] == module)) or "(?!)"
    text = re.sub(rf"{_REEXPORT}(?:self::)?(?:{children})\b[^;]*;", " ", text)
    inline = [(match.start(), _closing(text, match.end() - 1)) for match in _INLINE.finditer(text)]
    starts = re.compile(rf"(?<![\w:$])(?:crate|super|self|{children})::")
    for match in starts.finditer(text):
        depth = sum(begin < match.start() < end for begin, end in inline)
        for path in _expanded(text, match.start())[0]:
            yield _absolute(path, module, depth)


def _reexports(module: Module, text: str, files: dict[Module, Path]) -> Iterator[tuple[str, Module]]:
    for match in re.finditer(_REEXPORT, text):
        for path in _expanded(text, match.end())[0]:
            if path[0] in ("crate", "super", "self") or (*module, path[0]) in files:
                yield path[-1], _absolute(path, module, 0)


def _absolute(path: Module, module: Module, depth: int) -> Module:
    """`depth`: how many inline modules of its file a path stands in."""
    if path[0] == "crate":
        return path[1:]
    ups = next((i for i, name in enumerate(path) if name != "super"), len(path))
    base = module[: len(module) - max(0, ups - depth)]
    if ups < depth and path[0] in ("super", "self"):
        return module  # something in the file itself
    return (*base, *(name for name in path[ups:] if name != "self"))


def _expanded(text: str, at: int) -> tuple[list[Module], int]:
    """The paths of `a::{b, c::d}` at a place in the text, and where it ends. A renamed item keeps its own name."""
    head: list[str] = []
    while match := re.compile(r"\s*(\w+|\*)\s*").match(text, at):
        head.append(match[1])
        at = match.end()
        if not text.startswith("::", at):
            break
        at += 2
        if group := re.compile(r"\s*\{").match(text, at):
            tails, at = _expanded_group(text, group.end())
            return [(*head, *tail) for tail in tails], at
    return [tuple(head)], at


def _expanded_group(text: str, at: int) -> tuple[list[Module], int]:
    """The same for what stands between braces; `at` is behind the opening one."""
    tails: list[Module] = []
    while not (end := re.compile(r"\s*\}").match(text, at)):
        more, after = _expanded(text, at)
        rest = re.compile(r"(?:as\s+\w+)?\s*,?").match(text, after)
        if rest is None or rest.end() == at:
            raise ValueError(f"no path: {text[at : at + 40]!r}")
        tails, at = tails + more, rest.end()
    return tails, end.end()


def _closing(text: str, at: int) -> int:
    """The index of the brace that closes the one at `at`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, at):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(text)


def _declaring_module(path: Module, files: dict[Module, Path], reexports: dict[Module, dict[str, Module]]) -> Module:
    module: Module = ()
    for i, name in enumerate(path):
        if (*module, name) in files:
            module = (*module, name)
        elif name in reexports[module]:
            return _declaring_module((*reexports[module][name], *path[i + 1 :]), files, reexports)
        else:
            break
    return module


def components(graph: dict[Module, set[Module]]) -> list[set[Module]]:
    """Strongly connected components: modules that reach each other. (Graphs of some 50 files: no need for Tarjan.)"""
    reach = {module: _reached(graph, module) for module in graph}
    found = {frozenset({module} | {other for other in reach[module] if module in reach[other]}) for module in graph}
    return [set(component) for component in found]


def _reached(graph: dict[Module, set[Module]], start: Module) -> set[Module]:
    reached: set[Module] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached
