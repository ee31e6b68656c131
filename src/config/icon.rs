//! Icons of tools, resources and prompts: addresses, and small image files that become `data:` URIs.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use data_encoding::BASE64;
use toml::de::DeValue;

use super::origin::{Diagnosis, Setting};
use super::value::FromToml;

/// The most bytes of a file: each list sends the icon of each of its tools.
const LARGEST: usize = 32 << 10;
const FIX: &str =
    "write an address that begins with https:// or data:image/, or the path of an image below the folder of this file";

/// Whether clients fetch or show it themselves. They accept no other schemes.
fn is_address(icon: &str) -> bool {
    icon.starts_with("https://") || icon.starts_with("data:image/")
}

/// An address, or a path below the folder of the file that names it.
pub fn checked(icon: String) -> Result<String, Diagnosis> {
    let is_below =
        || Path::new(&icon).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let is_path = !icon.is_empty() && !icon.contains([':', '\0']) && is_below();
    let wrong = || Diagnosis::new(format!("expected the address or the path of an image, got \"{icon}\""), FIX);
    if is_address(&icon) || is_path { Ok(icon) } else { Err(wrong()) }
}

pub(super) fn icon(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    checked(String::from_toml(value)?)
}

/// The address alone.
pub(super) fn address(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let icon = String::from_toml(value)?;
    let wrong = format!("expected the address of an image, got \"{icon}\"");
    let fix = "write one that begins with https:// or data:image/";
    if is_address(&icon) { Ok(icon) } else { Err(Diagnosis::new(wrong, fix)) }
}

/// What clients get. A path begins in the folder of the file that sets it, which is the tool's own where none does.
pub fn resolved(icon: &Setting<String>, tool: &Path) -> Result<String, Diagnosis> {
    if is_address(&icon.value) {
        return Ok(icon.value.clone());
    }
    let from = icon.origin.place().map_or(tool, |place| &place.file);
    let path = from.parent().unwrap_or(Path::new("")).join(&icon.value);
    let wrong = |what: String| Diagnosis::new(format!("the icon {} {what}", path.display()), FIX);
    let bytes = read(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if bytes.len() > LARGEST {
        return Err(wrong(format!("is larger than {} KB", LARGEST >> 10)));
    }
    let kind = kind_of(&bytes).ok_or_else(|| wrong("is not a PNG, JPEG, GIF, WebP or SVG image".to_owned()))?;
    Ok(format!("data:{kind};base64,{}", BASE64.encode(&bytes)))
}

/// At most one byte more than an icon may have. A pipe is not waited for.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// By its content: a link of a tool file must not reveal another kind of file.
fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    let is_svg =
        || std::str::from_utf8(bytes).is_ok_and(|text| text.trim_start().starts_with('<') && text.contains("<svg"));
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => is_svg().then_some("image/svg+xml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_or_a_path_below_the_file() {
        for icon in ["https://a.b/c.png", "data:image/png;base64,iVBO", "a.png", "./icons/a.svg", "a b"] {
            assert_eq!(checked(icon.to_owned()), Ok(icon.to_owned()));
        }
        for icon in
            ["", "http://a.b/c.png", "data:text/html,x", "file:///a.png", "/a.png", "../a.png", "a/../../b", "a\0"]
        {
            assert!(checked(icon.to_owned()).is_err(), "{icon}");
        }
    }

    #[test]
    fn a_small_image_is_sent_with_the_list_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let sent = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), bytes).unwrap();
            resolved(&Setting::declared(name.to_owned()), &folder.path().join("tool.py"))
        };
        let png = b"\x89PNG\r\n\x1a\n";
        assert_eq!(sent("a", png).unwrap(), format!("data:image/png;base64,{}", BASE64.encode(png)));
        assert!(sent("b", b"<?xml version='1.0'?>\n<svg/>").unwrap().starts_with("data:image/svg+xml;base64,"));
        let padded = |size: usize| [&png[..], &vec![0; size - png.len()]].concat();
        assert!(sent("c", &padded(LARGEST)).is_ok());
        assert!(sent("d", &padded(LARGEST + 1)).is_err());
        assert!(sent("e", b"-----BEGIN KEY-----").is_err());
        assert!(sent("f", b"").is_err());
        for absent in ["absent.png", "."] {
            assert!(resolved(&Setting::declared(absent.to_owned()), &folder.path().join("tool.py")).is_err());
        }
    }
}
