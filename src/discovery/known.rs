//! The types that are known by name, and what each of them is in JSON.

use serde_json::json;

use super::schema::{Schema, of_type, schema};
use super::side::Side;

/// A type or a type form of the standard library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Text,
    Integer,
    Number,
    Boolean,
    Null,
    Bytes,
    Decimal,
    /// Text of a certain form, by the name JSON Schema has for it.
    Format(&'static str),
    List,
    /// A list, or something else that has items one after another.
    Sequence,
    Set,
    Tuple,
    Mapping,
    /// A mapping from values to how often they occur.
    Counter,
    Optional,
    Union,
    Literal,
    Annotated,
    /// A qualifier that says nothing about the value: `Final[X]`, `Required[X]`.
    Qualifier,
    /// `ClassVar[X]`: no field at all.
    ClassVariable,
    NewType,
    /// `TypeAliasType("Name", X)`
    MadeAlias,
    /// `Unpack[X]`: in `**kwargs`, and in tuples.
    Unpack,
}

impl Known {
    /// The type of a full dotted name.
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

    /// The type when it stands alone, without anything in brackets.
    pub(super) fn bare(self, side: Side) -> Schema {
        match self {
            Self::Text => of_type("string"),
            Self::Integer => of_type("integer"),
            Self::Number => of_type("number"),
            Self::Boolean => of_type("boolean"),
            Self::Null => of_type("null"),
            Self::Mapping => of_type("object"),
            Self::Counter => schema(json!({"type": "object", "additionalProperties": {"type": "integer"}})),
            // A set does not become JSON, and many things are sequences.
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

    /// Types that are written as text of some form.
    fn text(self, side: Side) -> Schema {
        match self {
            // pydantic's bytes are the text in UTF-8.
            Self::Bytes if side == Side::Validated => schema(json!({"type": "string", "format": "binary"})),
            Self::Bytes if side != Side::Dumped => schema(json!({"type": "string", "contentEncoding": "base64"})),
            Self::Format("uuid") => schema(json!({"type": "string", "format": "uuid"})),
            // Python writes times without a zone, and durations with fractions or a sign: the formats have neither.
            _ if !side.is_input() => of_type("string"),
            // A decimal is written as text where its digits matter, and as a number where they do not.
            Self::Decimal => schema(json!({"anyOf": [{"type": "string"}, {"type": "number"}]})),
            // As the worker takes it: PT90S, or a number of seconds.
            Self::Format("duration") => {
                schema(json!({"anyOf": [{"type": "string", "format": "duration"}, {"type": "number"}]}))
            }
            Self::Format(format) => schema(json!({"type": "string", "format": format})),
            _ => of_type("string"),
        }
    }
}
