//! From the bytes of a Python file to its text, as `CPython` reads them (PEP 263).

use super::HeaderError;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";
const SAVE_AS_UTF8: &str = "save the file as UTF-8";

/// The text of a Python source file: the byte-order mark dropped, every line end a `\n`, the encoding line honoured.
pub fn decode(bytes: &[u8]) -> Result<String, HeaderError> {
    let (bytes, marked) = bytes.strip_prefix(UTF8_MARK).map_or((bytes, false), |rest| (rest, true));
    if is_utf16(bytes) {
        return Err(HeaderError::new(1, "the file is UTF-16", SAVE_AS_UTF8));
    }
    let declared = declared_encoding(bytes);
    let text = match declared {
        None => utf8(bytes),
        Some((line, name)) => match Encoding::named(name) {
            Some(Encoding::Utf8) => utf8(bytes),
            Some(_) if marked => Err(HeaderError::new(
                line,
                format!("a UTF-8 file that calls itself {name}"),
                "remove the encoding line",
            )),
            Some(encoding) => by_table(bytes, &encoding, name),
            None => Err(unknown_encoding(bytes, line, name)),
        },
    }?;
    Ok(if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text })
}

/// By its mark, or by every other byte of its beginning being none: no Python file holds a NUL.
fn is_utf16(bytes: &[u8]) -> bool {
    let marked = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    marked || matches!(bytes, [1..=255, 0, 1..=255, 0, ..] | [0, 1..=255, 0, 1..=255, ..])
}

/// The encodings that old source files are found in.
enum Encoding {
    Utf8,
    Ascii,
    Latin1,
    Latin9,
    Windows1252,
}

impl Encoding {
    fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        // Editors append the kind of line end, and `CPython` lets them.
        let name = ["-unix", "-dos", "-mac"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        Some(match name {
            "utf-8" | "utf8" | "u8" | "utf" | "utf-8-sig" => Self::Utf8,
            "ascii" | "us-ascii" | "646" => Self::Ascii,
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "iso-latin-1" | "8859" | "cp819" | "l1" => Self::Latin1,
            "iso-8859-15" | "iso8859-15" | "latin-9" | "latin9" | "l9" => Self::Latin9,
            "cp1252" | "1252" | "windows-1252" => Self::Windows1252,
            _ => return None,
        })
    }

    fn character(&self, byte: u8) -> Option<char> {
        match self {
            _ if byte.is_ascii() => Some(char::from(byte)),
            Self::Utf8 | Self::Ascii => None,
            Self::Latin1 => Some(char::from(byte)),
            Self::Latin9 => Some(match byte {
                0xA4 => '€',
                0xA6 => 'Š',
                0xA8 => 'š',
                0xB4 => 'Ž',
                0xB8 => 'ž',
                0xBC => 'Œ',
                0xBD => 'œ',
                0xBE => 'Ÿ',
                _ => char::from(byte),
            }),
            Self::Windows1252 => windows_1252(byte),
        }
    }
}

/// The upper half of cp1252; `\0` where the code page has no character.
const WINDOWS_1252: &str = "€\0‚ƒ„…†‡ˆ‰Š‹Œ\0Ž\0\0‘’“”•–—˜™š›œ\0žŸ";

fn windows_1252(byte: u8) -> Option<char> {
    if byte >= 0xA0 {
        return Some(char::from(byte));
    }
    WINDOWS_1252.chars().nth(usize::from(byte.checked_sub(0x80)?)).filter(|c| *c != '\0')
}

fn utf8(bytes: &[u8]) -> Result<String, HeaderError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let line = line_of(bytes, error.valid_up_to());
        let place = if bytes.starts_with(b"#!") { "insert as line 2" } else { "insert as line 1" };
        // Where latin-1 has control characters that nobody writes, cp1252 has curly quotes and dashes.
        let is_windows = bytes.iter().any(|byte| (0x80..=0x9F).contains(byte));
        let name = if is_windows { "cp1252" } else { "latin-1" };
        let fix = format!("{SAVE_AS_UTF8}, or, if it is in {name}, {place} `# -*- coding: {name} -*-`");
        HeaderError::new(line, "this line is not UTF-8", fix)
    })
}

/// Saving a file as UTF-8 does not help while a line in it says that it is something else.
fn unknown_encoding(bytes: &[u8], line: usize, name: &str) -> HeaderError {
    let reason = format!("the encoding {name} is not read here");
    if std::str::from_utf8(bytes).is_ok() {
        return HeaderError::new(
            line,
            reason,
            format!("delete line {line}: the file is UTF-8, which needs no such line"),
        );
    }
    HeaderError::new(line, reason, format!("{SAVE_AS_UTF8}, and delete line {line}"))
}

fn by_table(bytes: &[u8], encoding: &Encoding, name: &str) -> Result<String, HeaderError> {
    let characters = bytes.iter().enumerate().map(|(at, byte)| {
        let unknown = || format!("the byte 0x{byte:02x} does not exist in {name}");
        encoding.character(*byte).ok_or_else(|| HeaderError::new(line_of(bytes, at), unknown(), SAVE_AS_UTF8))
    });
    characters.collect()
}

/// The encoding line (`# -*- coding: latin-1 -*-`) and where it stands; only the first two lines can be one.
fn declared_encoding(bytes: &[u8]) -> Option<(usize, &str)> {
    for (index, line) in bytes.split(|byte| *byte == b'\n').take(2).enumerate() {
        let end = line.iter().position(|byte| *byte == b'\r').unwrap_or(line.len());
        let line = line[..end].trim_ascii_start();
        if let Some(name) = encoding_in(line) {
            return Some((index + 1, name));
        }
        // A first line of code means that the second is not looked at.
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
