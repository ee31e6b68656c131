//! The types of the standard library and of pydantic that are known by name, with their JSON forms.

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
        match module {
            "builtins" => Self::builtin(name),
            "typing" | "typing_extensions" => Self::from_typing(name).or_else(|| Self::collection(name)),
            "collections" | "collections.abc" => Self::collection(name),
            "types" if name == "NoneType" => Some(Self::Null),
            "datetime" => Self::of_time(name),
            "uuid" if name == "UUID" => Some(Self::Format("uuid")),
            "decimal" if name == "Decimal" => Some(Self::Decimal),
            "ipaddress" => Self::of_address(name),
            "re" if name == "Pattern" => Some(Self::Format("regex")),
            "pathlib" if name.ends_with("Path") => Some(Self::Format("path")),
            "os" if name == "PathLike" => Some(Self::Format("path")),
            "dataclasses" if name == "InitVar" => Some(Self::Qualifier),
            _ => None,
        }
    }

    fn builtin(name: &str) -> Option<Self> {
        Some(match name {
            "str" => Self::Text,
            "int" => Self::Integer,
            "float" => Self::Number,
            "bool" => Self::Boolean,
            "bytes" | "bytearray" => Self::Bytes,
            "list" => Self::List,
            "set" | "frozenset" => Self::Set,
            "tuple" => Self::Tuple,
            "dict" => Self::Mapping,
            _ => return None,
        })
    }

    fn from_typing(name: &str) -> Option<Self> {
        Some(match name {
            "Text" | "LiteralString" => Self::Text,
            "Pattern" => Self::Format("regex"),
            "List" => Self::List,
            "FrozenSet" => Self::Set,
            "Tuple" => Self::Tuple,
            "Dict" | "DefaultDict" => Self::Mapping,
            "Optional" => Self::Optional,
            "Union" => Self::Union,
            "Literal" => Self::Literal,
            "Annotated" => Self::Annotated,
            "Required" | "NotRequired" | "ReadOnly" | "Final" => Self::Qualifier,
            "ClassVar" => Self::ClassVariable,
            "NewType" => Self::NewType,
            "TypeAliasType" => Self::MadeAlias,
            "Unpack" => Self::Unpack,
            _ => return None,
        })
    }

    fn collection(name: &str) -> Option<Self> {
        Some(match name {
            "Sequence" | "MutableSequence" | "Iterable" | "Collection" | "deque" | "Deque" => Self::Sequence,
            "Set" | "AbstractSet" | "MutableSet" => Self::Set,
            "Mapping" | "MutableMapping" | "OrderedDict" | "defaultdict" => Self::Mapping,
            "Counter" => Self::Counter,
            _ => return None,
        })
    }

    fn of_time(name: &str) -> Option<Self> {
        Some(Self::Format(match name {
            "datetime" => "date-time",
            "date" => "date",
            "time" => "time",
            "timedelta" => "duration",
            _ => return None,
        }))
    }

    fn of_address(name: &str) -> Option<Self> {
        Some(Self::Format(match name {
            "IPv4Address" => "ipv4",
            "IPv6Address" => "ipv6",
            "IPv4Network" => "ipv4network",
            "IPv6Network" => "ipv6network",
            _ => return None,
        }))
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
            // A set has no JSON form, and many types are sequences.
            Self::Sequence | Self::Set if side == Side::Returned => Schema::new(),
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

/// The schema of a pydantic type by its full dotted name.
pub(super) fn pydantic_type(full: &str, side: Side) -> Option<Schema> {
    let name = full.strip_prefix("pydantic.")?;
    let name = name.strip_prefix("types.").or_else(|| name.strip_prefix("networks.")).unwrap_or(name);
    let known = match name {
        "StrictStr" | "SecretStr" => of_type("string"),
        "StrictInt" => of_type("integer"),
        "StrictFloat" | "FiniteFloat" => of_type("number"),
        "StrictBool" => of_type("boolean"),
        "PositiveInt" => schema(json!({"type": "integer", "exclusiveMinimum": 0})),
        "NegativeInt" => schema(json!({"type": "integer", "exclusiveMaximum": 0})),
        "NonNegativeInt" => schema(json!({"type": "integer", "minimum": 0})),
        "NonPositiveInt" => schema(json!({"type": "integer", "maximum": 0})),
        "PositiveFloat" => schema(json!({"type": "number", "exclusiveMinimum": 0})),
        "NegativeFloat" => schema(json!({"type": "number", "exclusiveMaximum": 0})),
        "NonNegativeFloat" => schema(json!({"type": "number", "minimum": 0})),
        "NonPositiveFloat" => schema(json!({"type": "number", "maximum": 0})),
        "UUID1" | "UUID3" | "UUID4" | "UUID5" | "UUID6" | "UUID7" | "UUID8" => text(&name.to_ascii_lowercase()),
        "AnyUrl" | "AnyHttpUrl" | "HttpUrl" | "FileUrl" | "FtpUrl" | "WebsocketUrl" | "AnyWebsocketUrl" => text("uri"),
        "EmailStr" => text("email"),
        "IPvAnyAddress" => text("ipvanyaddress"),
        "FilePath" => text("file-path"),
        "DirectoryPath" => text("directory-path"),
        "NewPath" => text("path"),
        "PastDate" | "FutureDate" => text("date"),
        "AwareDatetime" | "NaiveDatetime" | "PastDatetime" | "FutureDatetime" => text("date-time"),
        _ => return None,
    };
    Some(if side.is_input() { known } else { of_type(known.get("type")?.as_str()?) })
}

fn text(format: &str) -> Schema {
    schema(json!({"type": "string", "format": format}))
}
