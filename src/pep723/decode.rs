//! From the bytes of a Python file to its text, as `CPython` decodes them (PEP 263).

use encoding_rs::{Encoding, UTF_8};

use super::HeaderError;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";
const SAVE_AS_UTF8: &str = "save the file as UTF-8";

/// The text of a Python source file: without byte-order mark, with `\n` as every line end, in its declared encoding.
pub fn decode(bytes: &[u8]) -> Result<String, HeaderError> {
    let (bytes, has_mark) = bytes.strip_prefix(UTF8_MARK).map_or((bytes, false), |rest| (rest, true));
    if is_utf16(bytes) {
        return Err(HeaderError::new(1, "the file is UTF-16", SAVE_AS_UTF8));
    }
    let text = match declared_encoding(bytes) {
        None => utf8(bytes)?,
        Some((line, name)) => match encoding_of(name) {
            Some(encoding) if encoding == UTF_8 => utf8(bytes)?,
            Some(_) if has_mark => {
                let reason = format!("the file is UTF-8 and declares the encoding {name}");
                return Err(HeaderError::new(line, reason, "remove the encoding line"));
            }
            Some(encoding) => in_encoding(bytes, encoding, name)?,
            None => {
                let fix = format!("{SAVE_AS_UTF8}, and delete this line");
                return Err(HeaderError::new(line, format!("unknown encoding {name}"), fix));
            }
        },
    };
    Ok(if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text })
}

/// By its mark, or because every other byte at the beginning is zero: no Python file holds a NUL.
fn is_utf16(bytes: &[u8]) -> bool {
    let has_mark = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    has_mark || matches!(bytes, [1..=255, 0, 1..=255, 0, ..] | [0, 1..=255, 0, 1..=255, ..])
}

/// The encoding that Python has under a name. What is not a superset of ASCII cannot be a source file's.
fn encoding_of(name: &str) -> Option<&'static Encoding> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    // Editors append the kind of line end, and `CPython` accepts that.
    let name = ["-unix", "-dos", "-mac"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let label = match name {
        "u8" | "utf" | "utf-8-sig" => "utf-8",
        "latin-1" | "iso-latin-1" | "8859" => "latin1",
        "iso8859-15" | "latin-9" | "latin9" => "iso-8859-15",
        other => other,
    };
    Encoding::for_label(label.as_bytes()).filter(|encoding| encoding.is_ascii_compatible())
}

fn utf8(bytes: &[u8]) -> Result<String, HeaderError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let fix = format!("{SAVE_AS_UTF8}, or declare its encoding: `# -*- coding: NAME -*-` as the first line");
        HeaderError::new(line_of(bytes, error.valid_up_to()), "this line is not UTF-8", fix)
    })
}

fn in_encoding(bytes: &[u8], encoding: &'static Encoding, name: &str) -> Result<String, HeaderError> {
    let is_ascii = matches!(name.to_ascii_lowercase().as_str(), "ascii" | "us-ascii");
    let invalid = if is_ascii { bytes.iter().position(|byte| !byte.is_ascii()) } else { None };
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes).filter(|_| invalid.is_none());
    text.map(std::borrow::Cow::into_owned).ok_or_else(|| {
        HeaderError::new(line_of(bytes, invalid.unwrap_or(0)), format!("the file is not {name}"), SAVE_AS_UTF8)
    })
}

/// The encoding line (`# -*- coding: latin-1 -*-`) and its number; only the first two lines can be one.
fn declared_encoding(bytes: &[u8]) -> Option<(usize, &str)> {
    for (index, line) in bytes.split(|byte| *byte == b'\n').take(2).enumerate() {
        let end = line.iter().position(|byte| *byte == b'\r').unwrap_or(line.len());
        let line = line[..end].trim_ascii_start();
        if let Some(name) = encoding_in(line) {
            return Some((index + 1, name));
        }
        // Where the first line is code, the second is not looked at.
        if !(line.is_empty() || line.starts_with(b"#")) {
            return None;
        }
    }
    None
}

/// `^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`, as PEP 263 has it.
fn encoding_in(line: &[u8]) -> Option<&str> {
    let mut rest = line.strip_prefix(b"#")?;
    while let Some(at) = rest.windows(6).position(|window| window == b"coding") {
        rest = &rest[at + 6..];
        let Some(value) = rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b"=")) else { continue };
        let value = value.trim_ascii_start();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let end = value.iter().position(|byte| !is_name(byte)).unwrap_or(value.len());
        if end > 0 {
            return std::str::from_utf8(&value[..end]).ok();
        }
    }
    None
}

fn line_of(bytes: &[u8], offset: usize) -> usize {
    let before = &bytes[..offset];
    let ends = before.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    ends.count() + 1
}
