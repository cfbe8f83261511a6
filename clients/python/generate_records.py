"""The records of the client, from the schemas of `openapi.json` and from what `records.in.py` adds
to them. A part of `generate.py`."""

from __future__ import annotations

import ast
import keyword
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

# Lists of records, which the client unpacks, and answers that it reads otherwise.
UNPACKED = {"Alive", "Backends", "LegacyExec", "Looked", "Sandboxes", "SessionEvent"}
UNPACKED |= {"SessionList", "SnapshotList", "StreamedEvent", "WatchEvent", "WebhookList"}
UNPACKED |= {"WorkspaceName", "Workspaces"}
# Objects that are passed on as the server tells them.
AS_TOLD = {"Answer", "Consent", "Elevated", "Isolation", "PathRule", "Profile", "RuleRef"}
AS_TOLD |= {"Ruling", "SandboxConfig", "Settings", "Tools"}
# What callers say, as dictionaries with types; with all that these consist of.
SAID_BY_CALLERS = ("Simulation",)
# Text of the system, such as a path: bytes where it is not UTF-8.
TEXT = "ByteString"
# A longer list of values is no help.
VALUES_MOST = 12
WIDTH = 100

MODULE = """What the server answers with, typed. Every record keeps in `extra` what this version
does not know. Times are aware datetimes in UTC. Where values are listed, a newer server may send
others."""

Schema = Mapping[str, Any]

PLAIN = {
    "string": ("str", '""'),
    "integer": ("int", "0"),
    "number": ("float", "0.0"),
    "boolean": ("bool", "False"),
}


@dataclass
class Own:
    """What is said of one record by hand."""

    schema: str
    doc: Optional[str] = None
    #: What the server calls a field, where that does not follow from its name.
    said: dict[str, str] = field(default_factory=dict)
    docs: dict[str, str] = field(default_factory=dict)
    #: Types and defaults that do not follow from the schema.
    types: dict[str, tuple[str, str]] = field(default_factory=dict)
    methods: list[str] = field(default_factory=list)


@dataclass
class Words:
    """What `records.in.py` says."""

    head: str
    classes: dict[str, Own]
    tail: str

    @classmethod
    def read(cls, path: Path) -> Words:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        doc, *body = ast.parse(text).body
        nodes = [node for node in body if isinstance(node, ast.ClassDef)]
        head = lines[doc.end_lineno : nodes[0].lineno - 1]
        tail = lines[nodes[-1].end_lineno :]
        classes = {node.name: _own(node, lines) for node in nodes}
        return cls("\n".join(head).strip(), classes, "\n".join(tail).strip())


def _own(node: ast.ClassDef, lines: list[str]) -> Own:
    own = Own(ast.unparse(node.bases[0]) if node.bases else node.name, ast.get_docstring(node))
    for it in node.body:
        if isinstance(it, ast.AnnAssign) and it.value is not None:
            default = ast.get_source_segment("\n".join(lines), it.value) or ""
            own.types[ast.unparse(it.target)] = ast.unparse(it.annotation), default
        elif isinstance(it, ast.Assign):
            name, value = ast.unparse(it.targets[0]), ast.literal_eval(it.value)
            if name == "SAID":
                own.said = value
            else:
                own.docs[name] = value
        elif isinstance(it, ast.FunctionDef):
            first = min([it.lineno, *(above.lineno for above in it.decorator_list)])
            own.methods.append("\n".join(lines[first - 1 : it.end_lineno]))
    return own


def field_order(text: str) -> dict[str, list[str]]:
    """The fields of each class as they stand in the file. `openapi.json` has them by name, but who
    makes a record from values without names relies on their order: it stays as it is."""
    return {
        node.name: [ast.unparse(it.target) for it in node.body if isinstance(it, ast.AnnAssign)]
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
    }


class Records:
    def __init__(self, api: Schema, words: Words, order: Mapping[str, list[str]]) -> None:
        self._schemas: Mapping[str, Schema] = api["components"]["schemas"]
        self._words = words
        self._order = order
        self._names = {own.schema: name for name, own in words.classes.items()}
        #: The names of the classes by those of their schemas.
        self.classes: dict[str, str] = {}
        self._begun: set[str] = set()
        self._texts: list[str] = []
        for name in sorted(set(self._answers(api))):
            self._add(name, told=False)
        for name in SAID_BY_CALLERS:
            self._add(name, told=True)
        unused = sorted(set(words.classes) - set(self.classes.values()))
        if unused:
            raise SystemExit(f"records.in.py: no answer has {', '.join(unused)}")

    def text(self) -> str:
        head = [f'"""{MODULE}"""', self._words.head]
        parts = ["\n\n".join(head), *self._texts, self._words.tail]
        return "\n\n\n".join(parts) + "\n"

    def _answers(self, api: Schema) -> Iterator[str]:
        """The schemas of all answers of success, and what is in those that are unpacked."""
        waiting: list[str] = []
        for operation in (it for path in api["paths"].values() for it in path.values()):
            for status, response in operation["responses"].items():
                if status.startswith("2"):
                    waiting += _references(response.get("content", {}))
        while waiting:
            name = waiting.pop()
            if name in UNPACKED or name.startswith("Page_"):
                waiting += _references(self._schemas[name])
            elif self._is_record(name):
                yield name

    def _is_record(self, name: str) -> bool:
        schema = self._schemas[name]
        return name not in AS_TOLD and self._is_object(schema) and bool(self._shape(schema)[0])

    def _is_object(self, schema: Schema) -> bool:
        _, schema = self._target(schema)
        parts = [*schema.get("allOf", ()), *schema.get("oneOf", ())]
        return schema.get("type") == "object" or (bool(parts) and all(map(self._is_object, parts)))

    def _add(self, schema: str, *, told: bool) -> None:
        """A class and, before it, those that it consists of."""
        if schema in self.classes:
            return
        if schema in self._begun:
            raise SystemExit(f"{schema} consists of itself: pass it on as it is, in AS_TOLD")
        self._begun.add(schema)
        properties, always = self._shape(self._schemas[schema])
        for part in sorted(set(_references(properties))):
            if self._is_record(part):
                self._add(part, told=told)
        name = self.classes[schema] = self._names.get(schema, schema)
        own = self._words.classes.get(name, Own(schema))
        fields = self._fields(name, own, properties, always)
        lines = _docstring(own.doc or self._schemas[schema].get("description", ""))
        if not told:
            lines += _other_names({it: wire for it, wire in fields.items() if it != wire})
        for it, wire in fields.items():
            lines += _comment(self._doc(properties[wire], own.docs.get(it)))
            kind = own.types.get(it) or self._type(properties[wire], wire in always)
            lines.append(f"    {it}: {self._said(properties[wire]) if told else ' = '.join(kind)}")
        if told:
            total = "" if len(always) == len(properties) else ", total=False"
            head = [f"class {name}(TypedDict{total}):"]
        else:
            lines.append("    extra: Mapping[str, Any] = decode.values(dict)")
            lines += [line for method in own.methods for line in ("", method)]
            head = ["@dataclass(frozen=True)", f"class {name}:"]
        self._texts.append("\n".join(head + lines))

    def _fields(
        self, name: str, own: Own, properties: Schema, always: list[str]
    ) -> dict[str, str]:
        """What the server calls each field of a class, in the order of the class. New fields come
        last: first those that are always there, in the order of the server's own type."""
        here = {wire: it for it, wire in own.said.items()}
        fields = {here.get(wire) or _snake(wire): wire for wire in [*always, *sorted(properties)]}
        wrong = [it for it in fields if keyword.iskeyword(it) or it in ("extra", "SAID")]
        wrong += sorted({*own.docs, *own.types, *own.said} - set(fields))
        if wrong:
            raise SystemExit(f"records.in.py: `{name}` cannot have {', '.join(wrong)}")
        known = [it for it in self._order.get(name, ()) if it in fields]
        return {it: fields[it] for it in [*known, *fields]}

    def _shape(self, schema: Schema) -> tuple[dict[str, Any], list[str]]:
        """The properties of an object and of all that it is put together from, and which of them
        are always there."""
        _, schema = self._target(schema)
        found = dict(schema.get("properties", {}))
        always = list(schema.get("required", ()))
        for part in schema.get("allOf", ()):
            properties, required = self._shape(part)
            found.update(properties)
            always += required
        choices = [self._shape(part) for part in schema.get("oneOf", ())]
        for properties, _ in choices:
            for name, other in properties.items():
                found[name] = _either(found[name], other) if name in found else other
        for name in choices[0][1] if choices else ():
            if all(name in required for _, required in choices):
                always.append(name)
        return found, always

    def _target(self, schema: Schema) -> tuple[Optional[str], Schema]:
        """What a schema refers to, with the last name on the way."""
        name = None
        while "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            schema = self._schemas[name]
        return name, schema

    def _type(self, schema: Schema, required: bool) -> tuple[str, str]:
        """The annotation and the default of a field. One that an older server leaves out, or that
        is null, has its default."""
        name, target, nullable = self._parts(schema)
        kind = target.get("type")
        if kind == "string" and target.get("format") == "date-time":
            return "Optional[datetime]", "decode.moment()"
        if kind == "array":
            return self._list(target.get("items", {}), nullable)
        # Numbers, flags and objects that are left out are those with nothing in them.
        optional = nullable or (not required and kind not in ("integer", "boolean", "object"))
        if name == TEXT:
            maybe = ("Optional[Text]", "decode.maybe_text()")
            return maybe if optional else ("Text", "decode.text()")
        if name is not None and self._is_record(name):
            record = self._names.get(name, name)
            maybe = (f"Optional[{record}]", f"decode.maybe({record})")
            return maybe if nullable or not required else (record, f"decode.one({record})")
        annotation, default = self._plain(target)
        if annotation == "Any" or not optional:
            return annotation, default
        return f"Optional[{annotation}]", "None"

    def _list(self, items: Schema, nullable: bool) -> tuple[str, str]:
        name, target, _ = self._parts(items)
        if name == TEXT:
            return "list[Text]", "decode.texts()"
        if name is not None and self._is_record(name):
            record = self._names.get(name, name)
            return f"list[{record}]", f"decode.many({record})"
        kind = f"list[{self._plain(target)[0]}]"
        return (f"Optional[{kind}]", "None") if nullable else (kind, "decode.values(list)")

    def _said(self, schema: Schema) -> str:
        """The annotation of what a caller says: as wide as can be, and without null."""
        name, target, _ = self._parts(schema)
        if target.get("type") == "array":
            return f"Sequence[{self._said(target.get('items', {}))}]"
        if name is not None and self._is_record(name):
            return self._names.get(name, name)
        return self._plain(target)[0]

    def _parts(self, schema: Schema) -> tuple[Optional[str], Schema, bool]:
        """The name of a schema, what it is beside null, and whether it may be null."""
        choices = schema.get("oneOf", [schema])
        some = [it for it in choices if it.get("type") != "null"]
        name, target = self._target(some[0] if len(some) == 1 else schema)
        kinds = target.get("type")
        if isinstance(kinds, list):
            (kind,) = (it for it in kinds if it != "null")
            return name, {**target, "type": kind}, True
        return name, target, len(some) < len(choices)

    def _plain(self, schema: Schema) -> tuple[str, str]:
        if self._is_object(schema):
            value = schema.get("additionalProperties")
            kind = self._plain(value)[0] if isinstance(value, Mapping) else "Any"
            return f"Mapping[str, {kind}]", "decode.values(dict)"
        return PLAIN.get(schema.get("type", ""), ("Any", "None"))

    def _doc(self, schema: Schema, own: Optional[str]) -> str:
        """What a field is, and which values it has."""
        choices = [schema, *schema.get("oneOf", ())]
        text = own or next((it["description"] for it in choices if "description" in it), "")
        _, target, _ = self._parts(schema)
        _, target, _ = self._parts(target.get("items", target))
        values = [f"`{it}`" for it in target.get("enum", ())]
        if values and len(values) <= VALUES_MOST and not any(it in text for it in values):
            *most, last = values
            listed = f"{', '.join(most)} or {last}" if most else last
            text = f"{text.rstrip('.')}: {listed}." if text else f"{listed}."
        return _words(text)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _either(one: Schema, other: Schema) -> Schema:
    """A property that has a form in each of several objects."""
    if "enum" in one and "enum" in other:
        return {**one, "enum": [*one["enum"], *other["enum"]]}
    return {"oneOf": [*one.get("oneOf", [one]), other]}


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def _words(text: str) -> str:
    """As a reader of Python knows it: without line ends and the links of Rust."""
    text = re.sub(r"\[(`[^`]*`)\]", r"\1", " ".join(text.split()))
    return re.sub(r"\b[Nn]ull\b", "None", text)


def _docstring(text: str) -> list[str]:
    return [*_wrapped(f'"""{_words(text)}"""', "    "), ""] if text else []


def _comment(text: str) -> list[str]:
    return _wrapped(text, "    #: ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _other_names(names: Mapping[str, str]) -> list[str]:
    """What the server calls those fields that have another name here."""
    if not names:
        return []
    each = [f'        "{it}": "{wire}",' for it, wire in names.items()]
    return ["    SAID: ClassVar[Mapping[str, str]] = {", *each, "    }", ""]
