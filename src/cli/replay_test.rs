//! `hostler replay ID --as-test`: a pytest file that makes a call again.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::events::short;
use super::replay::{Recorded, Source};
use super::style::Refusal;
use crate::words::on_one_line;

const TEMPLATE: &str = include_str!("templates/replay_test.py");

/// Writes it into a folder, and returns where. An existing file stays.
pub(super) fn write(recorded: &Recorded, source: &Source, folder: &Path) -> Result<PathBuf, Refusal> {
    let call = &recorded.call;
    let (tool, file) = named(&call.tool, source);
    let word: String = tool.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = folder.join(format!("test_{word}_{}.py", short(&call.call_id)));
    let text = fill(|name| match name {
        "CALL" => call.call_id.clone(),
        "WORD" => word.clone(),
        "TOOL" => python(&tool),
        "TOOLS" => tools(file, folder),
        "EXPECTED" => expected(recorded),
        _ => python(&serde_json::to_string(&recorded.arguments).unwrap_or_default()),
    });
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Refusal::new(format!("{} exists", path.display()), "remove it first"))
        }
        Err(error) => Err(Refusal::io(path.display().to_string(), error)),
    }
}

/// The template with these values in the places of their names.
fn fill(value: impl Fn(&str) -> String) -> String {
    let parts = TEMPLATE.trim_end().split('%').enumerate();
    parts.map(|(place, part)| if place % 2 == 0 { part.to_owned() } else { value(part) }).collect::<String>() + "\n"
}

/// The tool that the test calls, and its file, if it is not in a folder that hostler reads by itself.
fn named<'a>(tool: &str, source: &'a Source) -> (String, Option<&'a Path>) {
    match source {
        Source::Kept { file, .. } => (tool.to_owned(), Some(file)),
        Source::File(file) => {
            let pack = file.file_stem().unwrap_or_default().to_string_lossy();
            (
                tool.split_once('.').map_or_else(|| pack.to_string(), |(_, function)| format!("{pack}.{function}")),
                Some(file),
            )
        }
        Source::Present => (tool.to_owned(), None),
    }
}

/// A text as Python writes it: JSON's escapes are Python's.
fn python(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// The folder of tools as an expression: from the test's folder if it lies below.
fn tools(file: Option<&Path>, folder: &Path) -> String {
    let Some(parent) = file.and_then(Path::parent) else { return "None".to_owned() };
    match parent.strip_prefix(folder) {
        Ok(below) => format!("Path(__file__).parent / {}", python(&below.to_string_lossy())),
        Err(_) => format!("Path({})", python(&parent.to_string_lossy())),
    }
}

/// What the test wants: what the call gave, or that it does not fail again.
fn expected(recorded: &Recorded) -> String {
    let call = &recorded.call;
    let ends_well = "    assert outcome[\"error\"] is None";
    match (&call.error, &call.result) {
        (Some(error), _) => {
            let error = format!("{}: {}", error.code, error.message);
            format!("    # The call failed: {}\n{ends_well}", on_one_line(&error))
        }
        (None, Some(result)) => {
            format!("{ends_well}\n    assert outcome[\"result\"] == json.loads({})", python(&result.to_string()))
        }
        (None, None) => format!("{ends_well}  # its result was not kept"),
    }
}
