//! What people type for an argument and that is none: as a shell splits it, as other programs take it.

use serde_json::{Map, Value};

use super::arguments::{BadArgument, kinds};
use super::loose;
use crate::call::is_too_deep;
use crate::process::shell_word;

/// Why one of the words is no argument, when that can be told from those around it.
pub(super) fn no_argument(words: &[String], at: usize) -> BadArgument {
    let word = &words[at];
    let next = words.get(at + 1).map_or("", String::as_str);
    let before = at.checked_sub(1).and_then(|at| words.get(at)).map_or("", String::as_str);
    if is_dashed(word) {
        return BadArgument::Dashes { written: word.clone(), right: as_argument(word, next) };
    }
    // `name = x`, `name =x`, `name= x`: the shell made words of it.
    let parts = match (word.as_str(), next) {
        (sign @ ("=" | ":="), value) if !before.is_empty() => Some((before, sign, value)),
        (name, sign @ ("=" | ":=")) => Some((name, sign, words.get(at + 2).map_or("", String::as_str))),
        (name, value) if value.starts_with('=') => Some((name, "=", &value[1..])),
        (name, value) if value.starts_with(":=") => Some((name, ":=", &value[2..])),
        (value, _) if before.ends_with('=') => Some((before.trim_end_matches(['=', ':']), "=", value)),
        _ => None,
    };
    match parts {
        Some((name, sign, value)) => BadArgument::Blanks(quoted(name, sign, value)),
        None => BadArgument::NoKey(word.clone()),
    }
}

/// Whether a word begins with dashes, as options do.
pub(super) fn is_dashed(word: &str) -> bool {
    word.starts_with('-') && word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_alphabetic())
}

/// `--name x` as hostler takes it.
pub(super) fn as_argument(option: &str, next: &str) -> String {
    let name = option.trim_start_matches('-');
    match name.split_once('=') {
        Some((name, value)) => quoted(&name.replace('-', "_"), "=", value),
        None if next.is_empty() || next.starts_with('-') || next.contains('=') => {
            format!("{}=VALUE", name.replace('-', "_"))
        }
        None => quoted(&name.replace('-', "_"), "=", next),
    }
}

fn quoted(name: &str, sign: &str, value: &str) -> String {
    if value.contains(char::is_whitespace) { format!("{name}{sign}'{value}'") } else { format!("{name}{sign}{value}") }
}

/// A text for a list or an object that is none: how one is written. What a list of texts could be is one of its items.
pub(super) fn misread(
    key: &str,
    text: &str,
    value: &Value,
    property: Option<&Value>,
    root: &Value,
) -> Option<BadArgument> {
    let wanted = kinds(property?, root, 0);
    let has = |kinds: &[String], kind: &str| kinds.iter().any(|one| one == kind);
    if wanted.is_empty() || has(&wanted, "string") {
        return None;
    }
    let is_untouched = |value: &Value| value.as_str() == Some(text);
    if let Value::Array(items) = value
        && text.contains([',', ' '])
        && items.len() == 1
        && items.iter().all(is_untouched)
    {
        let items = property?.get("items").map(|items| kinds(items, root, 0)).unwrap_or_default();
        let whole =
            format!("[{}]", text.split([',', ' ']).filter(|item| !item.is_empty()).collect::<Vec<_>>().join(","));
        let right = serde_json::from_str::<Value>(&whole).is_ok() && !items.is_empty() && !has(&items, "string");
        return right.then(|| BadArgument::List { key: key.to_owned(), whole });
    }
    let is_object = is_untouched(value) && has(&wanted, "object");
    is_object.then(|| BadArgument::Object { key: key.to_owned(), like: example(property, root) })
}

/// What begins as a list or an object does and is no JSON, where no plain text is wanted.
pub(super) fn unread(key: &str, text: &str, property: Option<&Value>, root: &Value) -> Option<BadArgument> {
    let wanted = property.map(|property| kinds(property, root, 0)).unwrap_or_default();
    let error = serde_json::from_str::<Value>(text).err().filter(|_| text.trim_start().starts_with(['[', '{']))?;
    let takes = |kind: &str| wanted.iter().any(|one| one == kind);
    let is_meant = takes("array") || takes("object") || wanted.is_empty() && is_too_deep(&error);
    (is_meant && !takes("string")).then(|| not_json(key, text, &error, property, root))
}

/// What stands behind `:=` and is no JSON. Nobody is sent to plain text who wants a list or an object.
pub(super) fn not_json(
    key: &str,
    text: &str,
    error: &serde_json::Error,
    property: Option<&Value>,
    root: &Value,
) -> BadArgument {
    let (key, reason) = (key.to_owned(), error.to_string());
    if is_too_deep(error) {
        return BadArgument::Deep(key);
    }
    let wanted = property.map(|property| kinds(property, root, 0)).unwrap_or_default();
    let takes = |kind: &str| wanted.is_empty() || wanted.iter().any(|one| one == kind);
    if !text.trim_start().starts_with(['[', '{']) {
        let is_object = takes("object") && !takes("string") && !takes("array");
        let like = || example(property, root);
        return if is_object {
            BadArgument::Object { key, like: like() }
        } else {
            BadArgument::NotJson { key, reason }
        };
    }
    let items = property.and_then(|property| property.get("items")).map(|items| kinds(items, root, 0));
    let of_texts = takes("array") && items.is_some_and(|kinds| kinds == ["string"]);
    let fits = |value: &Value| if value.is_array() { takes("array") } else { takes("object") };
    let whole = |json: &str| shell_word(&format!("{key}:={json}"));
    let mut advice = match loose::meant(text, of_texts).filter(fits) {
        Some(right) => format!("write {}", whole(&right.to_string())),
        None if takes("object") => format!("write it like {}", whole(&example(property, root))),
        None => format!("write it like {}", whole("[\"…\", \"…\"]")),
    };
    if of_texts {
        advice = format!("{advice}, or {} for this one text", whole(&Value::from(vec![text]).to_string()));
    }
    BadArgument::Loose { key, reason, advice }
}

/// The fields of an object, as far as the schema names them.
fn example(property: Option<&Value>, root: &Value) -> String {
    let pointer = property.and_then(|property| property.get("$ref")?.as_str()?.strip_prefix('#'));
    let object = pointer.and_then(|pointer| root.pointer(pointer)).or(property);
    let fields = object.and_then(|object| object.get("properties")?.as_object()).map(Map::keys);
    let fields: Vec<String> = fields.into_iter().flatten().take(3).map(|name| format!("\"{name}\": …")).collect();
    if fields.is_empty() { "{\"name\": …}".to_owned() } else { format!("{{{}}}", fields.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::super::arguments::add;

    fn refused(words: &[&str]) -> String {
        let schema = json!({
            "properties": {
                "n": {"type": "integer"}, "name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
                "items": {"type": "array", "items": {"type": "integer"}}, "line": {"$ref": "#/$defs/Line"},
                "either": {"type": ["string", "object"]}, "free": {"type": "object"}, "any": {"type": "array"},
            },
            "$defs": {"Line": {"type": "object", "properties": {"from": {}, "to": {}}}},
        });
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut arguments = Map::new();
        add(&mut arguments, &words, schema.as_object()).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn blanks_and_dashes_are_told_with_the_right_words() {
        for words in [&["name", "=", "x"][..], &["name", "=x"], &["name=", "x"]] {
            assert_eq!(refused(words), "an argument has no blanks around `=`; write name=x", "{words:?}");
        }
        assert_eq!(refused(&["n", ":=", "3"]), "an argument has no blanks around `=`; write n:=3");
        assert_eq!(
            refused(&["--name", "x y"]),
            "`--name` is no option: a tool's arguments have no dashes; write name='x y'"
        );
        assert_eq!(refused(&["--name=x"]), "`--name=x` is no option: a tool's arguments have no dashes; write name=x");
        for words in [&["--my-name"][..], &["--my-name", "--n"], &["--my-name", "n=1"]] {
            let right = "`--my-name` is no option: a tool's arguments have no dashes; write my_name=VALUE";
            assert_eq!(refused(words), right, "{words:?}");
        }
        assert_eq!(refused(&["--my-n", "3"]), "`--my-n` is no option: a tool's arguments have no dashes; write my_n=3");
        for none in ["=", "=x", ":=x", "-1"] {
            assert_eq!(refused(&[none]), format!("`{none}` is not an argument; write key=value or key:=JSON"));
        }
        assert_eq!(refused(&["n", ":=3"]), "an argument has no blanks around `=`; write n:=3");
        assert_eq!(refused(&["x"]), "`x` is not an argument; write key=value or key:=JSON");
    }

    #[test]
    fn lists_and_objects_are_told_how_they_are_written() {
        assert_eq!(
            refused(&["items=1,2,3"]),
            "`items` is a list; write 'items:=[1,2,3]', or items=… once for each item"
        );
        assert_eq!(refused(&["items=1, 2"]), "`items` is a list; write 'items:=[1,2]', or items=… once for each item");
        assert_eq!(refused(&["free=foo"]), "`free` is an object; write 'free:={\"name\": …}'");
        assert_eq!(refused(&["line=foo"]), "`line` is an object; write 'line:={\"from\": …, \"to\": …}'");
        for fine in [
            "tags=a,b",
            "tags=1,2",
            "items=[1,2]",
            "line={}",
            "items=one",
            "items=true",
            "items=one,two",
            "either=x",
            "any=1,2",
        ] {
            assert_eq!(refused(&[fine]), "", "{fine}");
        }
        assert_eq!(refused(&["items=1", "items=2"]), "");
    }

    #[test]
    fn what_is_nearly_json_is_told_as_json_has_it() {
        let there = "names and texts stand in double quotes there";
        for (word, right) in [
            ("free={a:1}", "write 'free:={\"a\":1}'"),
            ("free:={a:1}", "write 'free:={\"a\":1}'"),
            ("free={'a':1}", "write 'free:={\"a\":1}'"),
            ("line={a", "write it like 'line:={\"from\": …, \"to\": …}'"),
            ("items=[1,]", "write 'items:=[1]'"),
            ("any=[a", "write it like 'any:=[\"…\", \"…\"]'"),
            ("tags=[a,1]", "write 'tags:=[\"a\",\"1\"]', or 'tags:=[\"[a,1]\"]' for this one text"),
            ("tags=['a']", "write 'tags:=[\"a\"]', or 'tags:=[\"['\\''a'\\'']\"]' for this one text"),
            ("whatever:=[a]", "write 'whatever:=[\"a\"]'"),
        ] {
            let told = refused(&[word]);
            assert!(told.contains("is not JSON: ") && told.ends_with(&format!("; {there}: {right}")), "{word}: {told}");
        }
        assert_eq!(refused(&["free:=a"]), "`free` is an object; write 'free:={\"name\": …}'");
        assert!(refused(&["name:=a"]).ends_with("; quote strings, or use name=value for plain text"));
        for fine in ["either={a:1}", "name=[a]", "whatever={a", "n=[1"] {
            assert_eq!(refused(&[fine]), "", "{fine}");
        }
    }

    #[test]
    fn what_is_too_deep_is_told_as_such() {
        let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
        for word in ["any=", "any:=", "tags=", "items:=", "whatever=", "name:="] {
            let name = word.trim_end_matches(['=', ':']);
            let told = refused(&[&format!("{word}{deep}")]);
            assert_eq!(told, format!("`{name}` is nested deeper than about 120 levels; flatten it"), "{word}");
        }
        let object = format!("{{\"a\":{deep}}}");
        assert!(refused(&[&format!("free={object}")]).starts_with("`free` is nested deeper"));
        assert_eq!(refused(&[&format!("name={deep}")]), "", "a text is a text");
        let input = |text: &str| super::super::arguments::object(text).unwrap_err().to_string();
        assert_eq!(input(&object), "`a` is nested deeper than about 120 levels; flatten it");
        let told = input("{'text':'a'}");
        assert!(told.ends_with("double quotes there: write --input '{\"text\":\"a\"}'"), "{told}");
    }

    #[test]
    fn the_same_argument_twice_is_refused() {
        assert_eq!(refused(&["name=x", "name=y"]), "`name` is given twice; keep one of the two");
        assert_eq!(refused(&["n:=1", "n=2"]), "`n` is given twice; keep one of the two");
        assert_eq!(refused(&["items=1", "items:=[2]"]), "`items` is given twice; keep one of the two");
    }
}
