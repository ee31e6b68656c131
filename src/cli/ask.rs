//! Questions of tools to the person at the terminal: `hostler call` is a client too.

use std::io::{BufRead, IsTerminal};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::Feedback;
use super::style;
use crate::call::{Answer, Asking, ClientError, ClientFeatures, Elicitation, Elicited, Root};
use crate::threads::blocking;

/// The person at the terminal.
struct Person(Arc<Feedback>);

/// Whether there is a person who can be asked.
pub(super) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The person who can be asked, if standard input and standard error are a terminal.
pub(super) fn person(feedback: &Arc<Feedback>) -> Option<Arc<dyn ClientFeatures>> {
    is_there().then(|| Arc::new(Person(Arc::clone(feedback))) as Arc<dyn ClientFeatures>)
}

impl ClientFeatures for Person {
    fn elicit(&self, asking: Asking, question: Elicitation) -> Answer<'_, Elicited, ClientError> {
        Box::pin(async move {
            let failed = |error: std::io::Error| ClientError::Failed(format!("cannot ask: {error}"));
            Ok(answer(&self.0, asking.tool, question.message, question.schema).map_err(failed)?.await)
        })
    }

    fn roots(&self, _: Asking) -> Answer<'_, Vec<Root>, ClientError> {
        Box::pin(async move {
            let here = std::env::current_dir().map_err(|error| ClientError::Failed(error.to_string()))?;
            Ok(vec![Root::of_folder(&here.to_string_lossy())])
        })
    }
}

/// Asks the person, on a thread of its own.
pub(super) fn answer(
    feedback: &Feedback,
    tool: String,
    message: String,
    schema: Value,
) -> std::io::Result<impl Future<Output = Elicited> + use<>> {
    feedback.pause();
    blocking(move || {
        style::talk(&format!("{tool} asks: {}\n", style::plain(&message)));
        fill_in(&schema, &mut std::io::stdin().lock(), &mut |text| style::talk(text))
    })
}

/// Asks for each value of a form; a form without values asks for consent. The end of the input cancels.
fn fill_in(schema: &Value, lines: &mut impl BufRead, say: &mut impl FnMut(&str)) -> Elicited {
    let nothing = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
    if fields.is_empty() {
        say("[y/N] ");
        return match line_of(lines).as_deref().map(yes_or_no) {
            Some(Some(true)) => Elicited::Accept { content: json!({}) },
            Some(_) => Elicited::Decline,
            None => Elicited::Cancel,
        };
    }
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut content = Map::new();
    for (name, field) in fields {
        let label = field.get("title").or(field.get("description")).and_then(Value::as_str).unwrap_or(name);
        let default = field.get("default");
        let hint = default.map_or_else(|| expected(field), |value| format!("{}, [{value}]", expected(field)));
        loop {
            say(&format!("{} ({}): ", style::plain(label), style::plain(&hint)));
            let Some(text) = line_of(lines) else { return Elicited::Cancel };
            let value = if text.is_empty() { default.cloned() } else { parsed(field, &text) };
            match value {
                Some(value) => content.insert(name.clone(), value),
                None if text.is_empty() && !required.contains(&name.as_str()) => None,
                None => {
                    say(&format!("expected {}; Ctrl-D cancels\n", style::plain(&expected(field))));
                    continue;
                }
            };
            break;
        }
    }
    Elicited::Accept { content: Value::Object(content) }
}

/// The next line; `None` at the end.
/// The next line; `None` at the end of the input.
pub(super) fn line_of(lines: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let length = lines.read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim().to_owned())
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// What a field takes, for people.
fn expected(field: &Value) -> String {
    let choices = choices(field);
    match field.get("type").and_then(Value::as_str) {
        Some("array") => format!("some of {}, separated by commas", choices.join(", ")),
        _ if !choices.is_empty() => format!("one of {}", choices.join(", ")),
        Some("integer") => "a whole number".to_owned(),
        Some("number") => "a number".to_owned(),
        Some("boolean") => "yes or no".to_owned(),
        _ => "text".to_owned(),
    }
}

/// The values of a choice, as `enum` or as `oneOf` and `anyOf` with titles.
fn choices(field: &Value) -> Vec<&str> {
    let place = field.get("items").unwrap_or(field);
    let titled = place.get("oneOf").or(place.get("anyOf")).and_then(Value::as_array);
    let titled = titled.into_iter().flatten().filter_map(|choice| choice.get("const")?.as_str());
    let plain = place.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    plain.chain(titled).collect()
}

/// A line as a field's value; `None` if it is not one.
fn parsed(field: &Value, text: &str) -> Option<Value> {
    let choices = choices(field);
    match field.get("type").and_then(Value::as_str) {
        Some("array") => {
            let chosen: Vec<&str> = text.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
            chosen.iter().all(|one| choices.contains(one)).then(|| json!(chosen))
        }
        _ if !choices.is_empty() => choices.contains(&text).then(|| text.into()),
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
        Some("boolean") => yes_or_no(text).map(Value::from),
        _ => Some(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialogue(schema: &Value, typed: &str) -> (Elicited, String) {
        let mut said = String::new();
        let answer = fill_in(schema, &mut typed.as_bytes(), &mut |text| said.push_str(text));
        (answer, said)
    }

    #[test]
    fn each_kind_of_field_is_asked_for_until_it_fits() {
        let schema = json!({"type": "object", "required": ["name", "count"], "properties": {
            "name": {"type": "string", "title": "Your name"},
            "count": {"type": "integer"},
            "price": {"type": "number", "default": 2.5},
            "sure": {"type": "boolean"},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "note": {"type": "string"},
        }});
        let (answer, said) = dialogue(&schema, "\nAda\nmany\n3\n\nperhaps\nyes\nxl\nl\na, b\n\n");
        let content = json!({"name": "Ada", "count": 3, "price": 2.5, "sure": true, "size": "l", "tags": ["a", "b"]});
        assert_eq!(answer, Elicited::Accept { content });
        for part in ["Your name (text): ", "expected a whole number", "(a number, [2.5])", "one of s, l"] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn consent_and_the_end_of_the_input() {
        let consent = json!({"type": "object", "properties": {}});
        assert_eq!(dialogue(&consent, "y\n").0, Elicited::Accept { content: json!({}) });
        assert_eq!(dialogue(&consent, "\n").0, Elicited::Decline);
        assert_eq!(dialogue(&consent, "").0, Elicited::Cancel);
        let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        assert_eq!(dialogue(&form, "\n").0, Elicited::Cancel);
    }
}
