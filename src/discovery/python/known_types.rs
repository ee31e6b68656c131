//! The types of the standard library and of pydantic that are known by name, with their JSON forms.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::schema::{Schema, of_type, schema};

/// Where a type occurs: the same type has different JSON forms as an argument and as a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// An argument, converted by the worker.
    Given,
    /// A part of an argument that pydantic converts, with its own rules: bytes are text, unknown keys are ignored.
    Validated,
    /// A result, as the worker writes it.
    Returned,
    /// A part of a result that pydantic writes.
    Dumped,
}

impl Side {
    pub(super) fn is_input(self) -> bool {
        matches!(self, Self::Given | Self::Validated)
    }

    pub(super) fn is_in_model(self) -> bool {
        matches!(self, Self::Validated | Self::Dumped)
    }

    /// The same direction, inside a pydantic model.
    pub(super) fn in_model(self) -> Self {
        if self.is_input() { Self::Validated } else { Self::Dumped }
    }
}

/// A type or type form of the standard library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownType {
    Text,
    Integer,
    Number,
    Boolean,
    Null,
    Bytes,
    Decimal,
    /// A string of this format.
    Format(&'static str),
    List,
    /// A list or another sequence.
    Sequence,
    Set,
    Tuple,
    Mapping,
    Counter,
    Optional,
    Union,
    Literal,
    Annotated,
    /// A qualifier that does not affect the value: `Final[X]`, `Required[X]`.
    Qualifier,
    /// `ClassVar[X]`: not a field.
    ClassVariable,
    NewType,
    /// `TypeAliasType("Name", X)`
    MadeAlias,
    /// `Unpack[X]`: in `**kwargs`, and in tuples.
    Unpack,
}

impl KnownType {
    /// The type of this full dotted name.
    pub(super) fn named(full: &str) -> Option<Self> {
        let (module, name) = full.rsplit_once('.')?;
        let of = |module: &str| {
            let mut rows = KNOWN.iter().filter(|(known, ..)| *known == module);
            rows.find(|(_, names, _)| names.split(' ').any(|known| known == name)).map(|row| row.2)
        };
        match module {
            "typing" | "typing_extensions" => of("typing").or_else(|| of("collections")),
            "collections.abc" => of("collections"),
            _ => of(module),
        }
    }

    /// The schema of the type without arguments.
    pub(super) fn bare(self, side: Side) -> Schema {
        match self {
            Self::Text => of_type("string"),
            Self::Integer => of_type("integer"),
            Self::Number => of_type("number"),
            Self::Boolean => of_type("boolean"),
            Self::Null => of_type("null"),
            Self::Mapping => of_type("object"),
            Self::Counter => schema(json!({"type": "object", "additionalProperties": {"type": "integer"}})),
            // Many types are sequences.
            Self::Sequence if side == Side::Returned => Schema::new(),
            Self::List | Self::Tuple | Self::Sequence => of_type("array"),
            Self::Set => schema(json!({"type": "array", "uniqueItems": true})),
            Self::Bytes | Self::Decimal | Self::Format(_) => self.text(side),
            Self::Optional
            | Self::Union
            | Self::Literal
            | Self::Annotated
            | Self::Qualifier
            | Self::ClassVariable
            | Self::NewType
            | Self::MadeAlias
            | Self::Unpack => Schema::new(),
        }
    }

    /// Types that are strings in JSON.
    fn text(self, side: Side) -> Schema {
        match self {
            // pydantic reads and writes bytes as UTF-8.
            Self::Bytes if side == Side::Validated => schema(json!({"type": "string", "format": "binary"})),
            Self::Bytes if side != Side::Dumped => schema(json!({"type": "string", "contentEncoding": "base64"})),
            Self::Format("uuid") => schema(json!({"type": "string", "format": "uuid"})),
            // Python writes times without a zone, and durations with fractions or a sign, which the formats do not allow.
            _ if !side.is_input() => of_type("string"),
            // Both a string and a number are accepted.
            Self::Decimal => schema(json!({"anyOf": [{"type": "string"}, {"type": "number"}]})),
            // The worker accepts PT90S, or a number of seconds.
            Self::Format("duration") => {
                schema(json!({"anyOf": [{"type": "string", "format": "duration"}, {"type": "number"}]}))
            }
            Self::Format(format) => schema(json!({"type": "string", "format": format})),
            _ => of_type("string"),
        }
    }
}

/// Known types by module and name. Those of `collections` are in `typing` too.
const KNOWN: &[(&str, &str, KnownType)] = &[
    ("builtins", "str", KnownType::Text),
    ("builtins", "int", KnownType::Integer),
    ("builtins", "float", KnownType::Number),
    ("builtins", "bool", KnownType::Boolean),
    ("builtins", "bytes bytearray", KnownType::Bytes),
    ("builtins", "list", KnownType::List),
    ("builtins", "set frozenset", KnownType::Set),
    ("builtins", "tuple", KnownType::Tuple),
    ("builtins", "dict frozendict", KnownType::Mapping),
    ("typing", "Text LiteralString", KnownType::Text),
    ("typing", "Pattern", KnownType::Format("regex")),
    ("typing", "List", KnownType::List),
    ("typing", "FrozenSet", KnownType::Set),
    ("typing", "Tuple", KnownType::Tuple),
    ("typing", "Dict DefaultDict", KnownType::Mapping),
    ("typing", "Optional", KnownType::Optional),
    ("typing", "Union", KnownType::Union),
    ("typing", "Literal", KnownType::Literal),
    ("typing", "Annotated", KnownType::Annotated),
    ("typing", "Required NotRequired ReadOnly Final", KnownType::Qualifier),
    ("typing", "ClassVar", KnownType::ClassVariable),
    ("typing", "NewType", KnownType::NewType),
    ("typing", "TypeAliasType", KnownType::MadeAlias),
    ("typing", "Unpack", KnownType::Unpack),
    ("collections", "Sequence MutableSequence Iterable Collection deque Deque", KnownType::Sequence),
    ("collections", "Set AbstractSet MutableSet", KnownType::Set),
    ("collections", "Mapping MutableMapping OrderedDict defaultdict", KnownType::Mapping),
    ("collections", "Counter", KnownType::Counter),
    ("types", "NoneType", KnownType::Null),
    ("datetime", "datetime", KnownType::Format("date-time")),
    ("datetime", "date", KnownType::Format("date")),
    ("datetime", "time", KnownType::Format("time")),
    ("datetime", "timedelta", KnownType::Format("duration")),
    ("uuid", "UUID", KnownType::Format("uuid")),
    ("decimal", "Decimal", KnownType::Decimal),
    ("ipaddress", "IPv4Address", KnownType::Format("ipv4")),
    ("ipaddress", "IPv6Address", KnownType::Format("ipv6")),
    ("ipaddress", "IPv4Network", KnownType::Format("ipv4network")),
    ("ipaddress", "IPv6Network", KnownType::Format("ipv6network")),
    ("re", "Pattern", KnownType::Format("regex")),
    ("pathlib", "Path PurePath PosixPath PurePosixPath WindowsPath PureWindowsPath", KnownType::Format("path")),
    ("os", "PathLike", KnownType::Format("path")),
    ("dataclasses", "InitVar", KnownType::Qualifier),
];

/// The schemas of pydantic's types by name.
static PYDANTIC: LazyLock<HashMap<&str, Schema>> =
    LazyLock::new(|| serde_json::from_str(include_str!("pydantic_types.json")).unwrap_or_default());

/// The schema of a pydantic type by its full dotted name. Results promise its type only.
pub(super) fn pydantic_type(full: &str, side: Side) -> Option<Schema> {
    let name = full.strip_prefix("pydantic.")?;
    let name = name.strip_prefix("types.").or_else(|| name.strip_prefix("networks.")).unwrap_or(name);
    let known = PYDANTIC.get(name)?;
    Some(if side.is_input() { known.clone() } else { of_type(known.get("type")?.as_str()?) })
}
