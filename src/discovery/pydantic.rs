//! The types that pydantic brings, by name.

use serde_json::json;

use super::schema::{Schema, of_type, schema};
use super::side::Side;

/// The schema of a type of pydantic's by its full dotted name.
pub(super) fn named(full: &str, side: Side) -> Option<Schema> {
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
