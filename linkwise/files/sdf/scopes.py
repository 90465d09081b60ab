"""Models within models, worlds and included files to scopes of names, and lists of the links, joints and frames.

Included files are found on a search path, never outside the folders that were given, and never fetched.
"""

from __future__ import annotations

from pathlib import Path

from linkwise.dataclass import dataclass, field
from linkwise.errors import LinkwiseError, ModelFileError
from linkwise.files.resources import LARGEST_FILE, SearchPath, read_bytes
from linkwise.files.sdf.places import FrameKind, NamedFrame, NameScope, PoseWritten, read_pose
from linkwise.files.values import Attributes, shown
from linkwise.files.xml import XmlElement, parse
from linkwise.mechanism.placement import pose

_VERSIONS = ((1, 4), (1, 12))
_SHARED_NAMES = (1, 7)  # from here on, links, joints, frames and models of a scope have one set of names
_DEEPEST_MODEL = 50


def read_version(root: XmlElement, values: Attributes) -> tuple[int, int]:
    """The version of a file."""
    text = values.text(root, "version", of="the file").strip()
    parts = text.split(".")
    whole = len(parts) in (2, 3) and all(part.isascii() and part.isdecimal() and len(part) < 4 for part in parts)
    version = (int(parts[0]), int(parts[1])) if whole else (0, 0)
    if not _VERSIONS[0] <= version <= _VERSIONS[1]:
        values.fail(
            "this version of SDF is not known",
            root,
            got=shown(text),
            allowed=" to ".join(".".join(map(str, each)) for each in _VERSIONS),
            do="convert the file: gz sdf -p file.sdf > newer.sdf" if version < _VERSIONS[0] else None,
        )
    return version


def world_scope(element: XmlElement, values: Attributes, version: tuple[int, int]) -> NameScope:
    """The outermost scope."""
    scope = NameScope(values, version)
    scope.place = NamedFrame("world", "world", element, scope, PoseWritten(pose()), X=pose())
    return scope


@dataclass(eq=False)
class Contents:
    """Contents of all models, in the order of the file."""

    library: Includes
    links: list[NamedFrame] = field(default_factory=list)
    joints: list[NamedFrame] = field(default_factory=list)
    frames: list[NamedFrame] = field(default_factory=list)

    def fill(self, element: XmlElement, scope: NameScope, home: Path | None, depth: int) -> None:
        """Read the frames of a ``<model>`` or ``<world>`` element into its scope; `depth` counts what is around it."""
        for child in element.children:
            if child.tag == "link" and scope.place.kind == "model":
                self.links.append(self._place(child, "link", scope))
            elif child.tag == "joint":
                self.joints.append(self._joint(child, scope))
            elif child.tag == "frame":
                self.frames.append(self._frame(child, scope))
            elif child.tag == "model":
                self.model(child, scope, home, depth)
            elif child.tag == "include":
                self.include(child, scope, home, depth)
        firsts = [next((at for at in scope.names.values() if at.kind == kind), None) for kind in ("link", "model")]
        scope.place.carrier = firsts[0] or firsts[1]  # those that were merged into this model are among them

    def model(
        self,
        element: XmlElement,
        around: NameScope,
        home: Path | None,
        depth: int,
        *,
        named: bool = True,
    ) -> None:
        """A ``<model>``; not `named`: what is in it needs no prefix."""
        values = around.values
        name = values.text(element, "name", of="a model")
        prefix = around.prefix + (f"{name}::" if named else "")
        inner = NameScope(values, around.version, prefix, includes=around.includes)
        written = read_pose(element, values, of=f"model {shown(name)}")
        self._filled(element, element, name, inner, around, written, home, depth)

    def include(self, element: XmlElement, around: NameScope, home: Path | None, depth: int) -> None:
        """The model in an included file; nothing where it has something else, a light for instance."""
        values = around.values
        uri = values.content(values.required_child(element, "uri", of="an include"), of="an include")
        root, file, folder = self.library.open(uri, element, values, home, around.includes + 1)
        theirs = Attributes(file, values.snap)
        if root.tag != "sdf":
            theirs.fail("the included file is not SDF", root, got=f"<{root.tag[:40]}>", allowed="<sdf>")
        version = read_version(root, theirs)
        models = root.all("model")
        if not models and (root.all("light") or root.all("actor")):
            return
        if len(models) != 1:
            theirs.fail("an included file has one model", root, got=f"{len(models)} <model> elements")
        model = models[0]
        of = "an include"
        override = values.child(element, "name")
        name = theirs.text(model, "name", of="a model") if override is None else values.content(override, of=of)
        merge = values.flag(element.attributes.get("merge", "false"), element, "the attribute 'merge'", of=of)
        prefix = around.prefix + ("" if merge else f"{name}::")
        inner = NameScope(theirs, version, prefix, around=around if merge else None, includes=around.includes + 1)
        placed = values.child(element, "pose") is not None
        written = read_pose(element if placed else model, values if placed else theirs, of=f"model {shown(name)}")
        if not placed:
            written = PoseWritten(written.X)  # relative to the scope it stands in: inside its own file there is none
        self._filled(model, element, name, inner, around, written, folder, depth + 1)

    def _filled(
        self,
        model: XmlElement,
        at: XmlElement,
        name: str,
        inner: NameScope,
        around: NameScope,
        written: PoseWritten,
        home: Path | None,
        depth: int,
    ) -> None:
        values, of = inner.values, f"model {shown(name)}"
        if depth > _DEEPEST_MODEL:
            values.fail("the models are nested too deeply", model, allowed=f"at most {_DEEPEST_MODEL} levels")
        place = NamedFrame(
            around.prefix + name,
            "model",
            at,
            around,
            written,
            base=around.place,
            attached=model.attributes.get("canonical_link", "").strip(),
            inner=inner,
            placement_frame=model.attributes.get("placement_frame", "").strip(),
        )
        if at is not model:  # included
            chosen = around.values.child(at, "placement_frame")
            if chosen is not None:
                place.placement_frame = around.values.content(chosen, of=of)
                around.values.required_child(at, "pose", of=f"an include with a placement_frame, of {of},")
        static = values.child_flag(model, "static", False, of=of)
        inner.static = around.static or (
            static if at is model else around.values.child_flag(at, "static", static, of=of)
        )
        inner.place = place
        if inner.around is None:
            self._register(name, place, around)
        self.fill(model, inner, home, depth + 1)

    def _joint(self, element: XmlElement, scope: NameScope) -> NamedFrame:
        place = self._place(element, "joint", scope)
        child = scope.values.required_child(element, "child", of=f"joint {shown(place.name)}")
        place.attached = scope.values.content(child, of=f"joint {shown(place.name)}")
        if not place.written.relative_to:  # a joint's pose is in the frame of its child
            place.written = PoseWritten(place.written.X, place.attached)
        return place

    def _frame(self, element: XmlElement, scope: NameScope) -> NamedFrame:
        place = self._place(element, "frame", scope)
        place.attached, place.carrier = element.attributes.get("attached_to", "").strip(), scope.place
        if not place.written.relative_to:  # its pose is in what carries it
            place.written = PoseWritten(place.written.X, place.attached)
        return place

    def _place(self, element: XmlElement, kind: FrameKind, scope: NameScope) -> NamedFrame:
        name = scope.values.text(element, "name", of=f"a {kind}").strip()
        written = read_pose(element, scope.values, of=f"{kind} {shown(name)}")
        place = NamedFrame(scope.prefix + name, kind, element, scope, written, base=scope.place)
        self._register(name, place, scope)
        return place

    def _register(self, name: str, place: NamedFrame, scope: NameScope) -> None:
        if name == "world" or (len(name) >= 4 and name.startswith("__") and name.endswith("__")):
            scope.values.fail(f"a {place.kind} cannot be named {name!r}: the format has it", place.at, do="rename it")
        here: NameScope | None = scope
        while here is not None:
            first = here.names.setdefault(name, place)
            if first is not place and (first.kind == place.kind or here.version >= _SHARED_NAMES):
                scope.values.fail(
                    f"a {place.kind} is named like another {first.kind}" if first.kind == place.kind
                    else f"a {place.kind} is named like a {first.kind}",
                    place.at,
                    got=f"{name!r}; the first is on line {first.at.line}",
                    do="rename or delete one of them",
                )  # fmt: skip
            if first is not place and place.kind == "link":
                del here.names[name]  # old files name joints like links, and then mean the link
                here.names[name] = place
            here = here.around


_MOST_FILES = 1000
_DEEPEST_FILE = 20


@dataclass(eq=False)
class Includes:
    """The included files: where they are looked for, and those read so far.

    Args:
        search: the folders, as the file itself has them.
    """

    search: SearchPath
    files: int = 0
    size: int = 0
    parsed: dict[Path, tuple[XmlElement, int]] = field(default_factory=dict)

    @property
    def home(self) -> Path | None:
        """The folder of the file itself; None where there is no file."""
        return self.search.home

    def open(
        self, uri: str, at: XmlElement, values: Attributes, home: Path | None, depth: int
    ) -> tuple[XmlElement, str, Path]:
        """The root element of an included file, its name for messages, and its folder."""
        self.files += 1
        if depth > _DEEPEST_FILE:
            values.fail(
                "files include each other too deeply, or in a circle", at, allowed=f"at most {_DEEPEST_FILE} levels"
            )
        if self.files > _MOST_FILES:
            values.fail("too many files are included", at, allowed=f"at most {_MOST_FILES}")
        path = self._file(self._found(uri, at, values, home), at, values)
        if path not in self.parsed:
            try:
                content = read_bytes(path, suffixes=(".sdf",))
            except LinkwiseError as error:
                values.fail(f"the included file cannot be read: {error.what}", at, got=shown(uri))
            self.parsed[path] = parse(content, str(path)), len(content)
        root, size = self.parsed[path]
        self.size += size
        if self.size > LARGEST_FILE:
            values.fail("the included files are too large to be a model", at, allowed=f"{LARGEST_FILE} bytes together")
        return root, str(path), path.parent

    def _found(self, uri: str, at: XmlElement, values: Attributes, home: Path | None) -> Path:
        try:
            return self.search.within(home).find(uri)
        except ModelFileError as error:
            values.fail(f"an included model: {error.what}", at, **error.parts)

    def _file(self, path: Path, at: XmlElement, values: Attributes) -> Path:
        """The file of a model's folder: what its model.config says for the newest version, or model.sdf."""
        if not path.is_dir():
            return path
        named = "model.sdf"
        config = path / "model.config"
        if config.is_file():
            try:
                root = parse(read_bytes(config, suffixes=(".config",)), str(config))
            except LinkwiseError as error:
                values.fail(f"the model.config of the included model cannot be read: {error.what}", at)
            files = [(_version(each.attributes.get("version", "")), each.text) for each in root.all("sdf") if each.text]
            if files:
                named = max(files)[1]
        inside = (path / named).resolve() if "\0" not in named and len(named) < 1000 else path
        if not inside.is_relative_to(path) or not inside.is_file():
            values.fail("the included folder has no model file", at, got=shown(str(path)), allowed=shown(named))
        return inside


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdecimal() and len(part) < 6)
