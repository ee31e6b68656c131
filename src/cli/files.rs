//! Results that are images or files: their bytes into a pipe or a file, a word about them on a terminal.

use std::io::IsTerminal;

use data_encoding::BASE64;
use serde_json::Value;

use super::style;
use crate::outcome::{File, each_file, may_hold_files};

/// Answers with a result that is a file, or on a terminal with one that holds some. False when the result is neither and
/// is to be shown as any other.
pub(super) fn answer(json: &str) -> bool {
    if !may_hold_files(json) {
        return false;
    }
    let Ok(mut result) = serde_json::from_str::<Value>(json) else { return false };
    let for_a_person = std::io::stdout().is_terminal();
    match result.as_object().and_then(File::of) {
        Some(file) if !for_a_person => match BASE64.decode(file.base64.as_bytes()) {
            Ok(bytes) => {
                style::answer_bytes(&bytes);
                true
            }
            Err(_) => false,
        },
        Some(file) => {
            let keep = file.name.unwrap_or("FILE");
            style::answer(&format!("{}; send it to a file to keep it: … > {keep}", words(&file)));
            true
        }
        None if for_a_person => {
            shorten(&mut result);
            style::answer(&serde_json::to_string_pretty(&result).unwrap_or_default());
            true
        }
        None => false,
    }
}

fn words(file: &File<'_>) -> String {
    let name = file.name.map(|name| format!("{name}, ")).unwrap_or_default();
    format!("{name}{}, {} bytes", file.mime_type, file.size())
}

/// Puts a word where the bytes of files are: nobody reads base64.
fn shorten(value: &mut Value) {
    each_file(value, &mut |object| {
        let text = File::of(object).map(|file| format!("({} bytes)", file.size()));
        object.insert("base64".to_owned(), text.into());
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_are_told_of_files_within_a_result() {
        let file = json!({"mime_type": "image/png", "base64": "iVBO", "name": "a.png"});
        let mut result = json!({"pages": [file, 3]});
        shorten(&mut result);
        assert_eq!(result["pages"][0]["base64"], "(3 bytes)");
        assert_eq!(words(&File::of(file.as_object().unwrap()).unwrap()), "a.png, image/png, 3 bytes");
    }
}
