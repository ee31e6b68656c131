//! Files that the operator offers as resources: `[mcp] resources = ["docs/**"]`, relative to the configuration file.
//!
//! The folder is opened once and everything else beneath it, so links lead nowhere else. Names that begin with a dot are never
//! offered, and neither are the configuration and the files of secrets, whatever their names.

use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Once;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use data_encoding::BASE64;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{Resource, ResourceContents};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::blocks::is_text;
use crate::config::load::FILE_NAME;
use crate::config::mcp::ResourceFiles;

/// How the addresses of files begin.
const FILES: &str = "hostler://files/";
/// Files that are listed. A pattern that matches more is probably a mistake.
const MAX_FILES: usize = 20_000;
/// Folders in one another.
const MAX_DEPTH: usize = 32;

/// Characters that need no encoding in a path of a URI, besides letters and digits.
const NOT_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// It is not offered, or does not exist.
    #[error("there is no such file")]
    NotFound,
    /// It is larger than a message may be.
    #[error(
        "the file has {size} bytes, more than fit into one message; offer a smaller one, or raise `max_result` under [mcp]"
    )]
    TooLarge { size: u64 },
    /// The system's reason.
    #[error("the file cannot be read: {0}; check its permissions")]
    Unreadable(#[from] io::Error),
}

/// The offered files, in the order of their addresses.
pub(super) fn list(offered: &ResourceFiles) -> Vec<Resource> {
    let Ok(folder) = Dir::open_ambient_dir(&offered.folder, ambient_authority()) else { return Vec::new() };
    let (patterns, starts, withheld) = (patterns(offered), starts(offered), withheld(offered));
    let mut walk = Walk { patterns, starts, withheld, found: Vec::new(), root: &folder };
    walk.folder(&folder, Path::new(""), 0);
    if walk.found.len() > MAX_FILES {
        static WARNED: Once = Once::new();
        WARNED.call_once(|| {
            let folder = offered.folder.display();
            tracing::warn!(%folder, "more than {MAX_FILES} files match [mcp] resources; the rest is not listed");
        });
        walk.found.truncate(MAX_FILES);
    }
    walk.found.sort_by(|left, right| left.0.cmp(&right.0));
    walk.found.iter().map(|(path, size)| described(path, *size)).collect()
}

/// Whether an address is one of a file.
pub(super) fn is_one(uri: &str) -> bool {
    uri.starts_with(FILES)
}

/// What changes with the bytes of a file: its times, size and place.
pub(super) fn stamp(offered: &ResourceFiles, uri: &str) -> Option<[u8; 32]> {
    let (_, about, _) = open(offered, uri).ok()?;
    let times = [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()];
    let bytes: Vec<u8> = times
        .into_iter()
        .flat_map(i64::to_be_bytes)
        .chain(about.len().to_be_bytes())
        .chain(about.ino().to_be_bytes())
        .collect();
    Some(Sha256::digest(bytes).into())
}

/// The contents of a file by its address.
pub(super) fn read(offered: &ResourceFiles, uri: &str, most: usize) -> Result<ResourceContents, FileError> {
    let (file, about, path) = open(offered, uri)?;
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(FileError::TooLarge { size: about.len().max(bytes.len() as u64) });
    }
    let mime_type = mime_type(&path);
    let contents = match String::from_utf8(bytes) {
        Ok(text) if mime_type.is_none_or(is_text) => ResourceContents::text(text, uri),
        Ok(text) => ResourceContents::blob(BASE64.encode(text.as_bytes()), uri),
        Err(other) => ResourceContents::blob(BASE64.encode(other.as_bytes()), uri),
    };
    let kind = mime_type.unwrap_or(if matches!(contents, ResourceContents::TextResourceContents { .. }) {
        "text/plain"
    } else {
        "application/octet-stream"
    });
    Ok(contents.with_mime_type(kind))
}

/// An offered file by its address.
fn open(offered: &ResourceFiles, uri: &str) -> Result<(File, Metadata, PathBuf), FileError> {
    let written = uri.strip_prefix(FILES).ok_or(FileError::NotFound)?;
    let path = percent_decode_str(written).decode_utf8().map_err(|_| FileError::NotFound)?;
    let path = &Path::new(&*path).components().collect::<PathBuf>();
    // The one address of each file is the one that is listed.
    let patterns = patterns(offered);
    if address(path) != uri || !is_plain(path) || !patterns.is_match(path) {
        return Err(FileError::NotFound);
    }
    let folder = Dir::open_ambient_dir(&offered.folder, ambient_authority()).map_err(missing)?;
    // Opening a device may do something.
    if !folder.metadata(path).map_err(missing)?.is_file() {
        return Err(FileError::NotFound);
    }
    let (file, about) = open_file(&folder, path)?;
    // A link may have been put in its place since: what was opened has to be what is offered.
    let really = resolved(&folder, path, &patterns).ok_or(FileError::NotFound)?;
    if identity(&about) != identity(&really) || withheld(offered).contains(&identity(&about)) {
        return Err(FileError::NotFound);
    }
    Ok((file, about, path.clone()))
}

/// Opens a file, or finds that there is none. A pipe that was put in its place since is not waited for.
fn open_file(folder: &Dir, path: &Path) -> Result<(File, Metadata), FileError> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = folder.open_with(path, &options).map_err(missing)?;
    let about = file.metadata()?;
    if about.is_file() { Ok((file, about)) } else { Err(FileError::NotFound) }
}

/// What tells one file from all others.
type Identity = (u64, u64);

fn identity(about: &Metadata) -> Identity {
    (about.dev(), about.ino())
}

/// The files that are never offered.
fn withheld(offered: &ResourceFiles) -> Vec<Identity> {
    use std::os::unix::fs::MetadataExt;
    let files = offered.withheld.iter().filter_map(|path| path.metadata().ok());
    files.map(|about| (about.dev(), about.ino())).collect()
}

/// What lies at a path that is offered: not below a link to a folder, and if it is itself a link, to a file that is offered too.
fn resolved(folder: &Dir, path: &Path, patterns: &GlobSet) -> Option<Metadata> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if parent.is_some_and(|parent| folder.canonicalize(parent).ok().as_deref() != Some(parent)) {
        return None;
    }
    let target = folder.canonicalize(path).ok()?;
    let is_offered = is_plain(&target) && patterns.is_match(&target);
    folder.symlink_metadata(&target).ok().filter(|about| is_offered && about.is_file())
}

/// A path that leads outside is refused without a system error. It was never offered.
fn missing(error: io::Error) -> FileError {
    let is_outside = error.raw_os_error().is_none();
    if is_outside || matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
        return FileError::NotFound;
    }
    FileError::Unreadable(error)
}

/// Whether a path consists of names that are offered.
fn is_plain(path: &Path) -> bool {
    let is_name = |part: Component<'_>| match part {
        Component::Normal(name) => {
            let bytes = name.as_encoded_bytes();
            !bytes.starts_with(b".") && !bytes.iter().any(u8::is_ascii_control)
        }
        _ => false,
    };
    path.components().all(is_name) && path.file_name().is_some_and(|name| name != FILE_NAME)
}

struct Walk<'r> {
    root: &'r Dir,
    patterns: GlobSet,
    /// The folders in which every pattern begins.
    starts: Vec<PathBuf>,
    withheld: Vec<Identity>,
    found: Vec<(PathBuf, u64)>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Dir, path: &Path, depth: usize) {
        let Ok(entries) = folder.entries() else { return };
        for entry in entries.flatten() {
            if self.found.len() > MAX_FILES {
                return;
            }
            let path = path.join(entry.file_name());
            // A name that is not UTF-8 has no address.
            if path.to_str().is_none() || !is_plain(&path) {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                let leads_there = self.starts.iter().any(|start| start.starts_with(&path) || path.starts_with(start));
                if let Some(inner) = entry.open_dir().ok().filter(|_| leads_there && depth < MAX_DEPTH) {
                    self.folder(&inner, &path, depth + 1);
                }
            } else if self.patterns.is_match(&path) {
                let about = if kind.is_symlink() {
                    resolved(self.root, &path, &self.patterns)
                } else {
                    entry.metadata().ok().filter(Metadata::is_file)
                };
                let about = about.filter(|about| !self.withheld.contains(&identity(about)));
                self.found.extend(about.map(|about| (path, about.len())));
            }
        }
    }
}

fn patterns(offered: &ResourceFiles) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    // They were checked with the configuration.
    let globs = offered.patterns.iter().filter_map(|pattern| glob(pattern).ok());
    for glob in globs {
        set.add(glob);
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
}

/// A pattern in which `*` matches within one folder.
fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// The folder of each pattern before its first wildcard.
fn starts(offered: &ResourceFiles) -> Vec<PathBuf> {
    let start = |pattern: &String| {
        let parts = pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{']));
        parts.collect::<PathBuf>()
    };
    offered.patterns.iter().map(start).collect()
}

fn address(path: &Path) -> String {
    format!("{FILES}{}", utf8_percent_encode(&path.to_string_lossy(), NOT_ENCODED))
}

fn described(path: &Path, size: u64) -> Resource {
    let mut resource = Resource::new(address(path), path.to_string_lossy()).with_size(size);
    resource.mime_type = mime_type(path).map(str::to_owned);
    resource
}

/// The MIME type that a name tells.
fn mime_type(path: &Path) -> Option<&'static str> {
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    MIME_TYPES.iter().find(|(known, _)| *known == end).map(|(_, kind)| *kind)
}

const MIME_TYPES: &[(&str, &str)] = &[
    ("md", "text/markdown"),
    ("markdown", "text/markdown"),
    ("txt", "text/plain"),
    ("log", "text/plain"),
    ("rst", "text/x-rst"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("js", "text/javascript"),
    ("ts", "text/x-typescript"),
    ("sh", "text/x-shellscript"),
    ("sql", "application/sql"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("xml", "application/xml"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    fn offered(folder: &Path, patterns: &[&str]) -> ResourceFiles {
        ResourceFiles {
            folder: folder.to_owned(),
            patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
            withheld: vec![folder.join("settings.toml"), folder.join("none.toml")],
        }
    }

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("docs/a.md", "# A"),
            ("docs/deep/b c.txt", "b"),
            ("docs/deep/pic.png", "\u{89}"),
            ("docs/.secret/key", "k"),
            ("docs/.env", "k"),
            ("docs/raw", "plain"),
            ("other/x.md", "x"),
            ("hostler.toml", "log = \"info\""),
        ] {
            let path = folder.path().join("home").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(folder.path().join("outside.md"), "secret").unwrap();
        let docs = folder.path().join("home/docs");
        symlink("../../outside.md", docs.join("out.md")).unwrap();
        symlink(folder.path().join("outside.md"), docs.join("absolute.md")).unwrap();
        symlink("../other/x.md", docs.join("within.md")).unwrap();
        symlink("..", docs.join("circle")).unwrap();
        fs::write(docs.join("binary"), b"\xff\xfe").unwrap();
        folder
    }

    fn addresses(offered: &ResourceFiles) -> Vec<String> {
        list(offered).into_iter().map(|one| one.uri.strip_prefix(FILES).unwrap().to_owned()).collect()
    }

    #[test]
    fn files_that_match_are_listed_and_nothing_outside() {
        let folder = tree();
        let home = folder.path().join("home");
        let docs = ["docs/a.md", "docs/binary", "docs/deep/b%20c.txt", "docs/deep/pic.png", "docs/raw"];
        assert_eq!(addresses(&offered(&home, &["docs/**"])), docs);
        assert_eq!(
            addresses(&offered(&home, &["docs/*.md", "other/**"])),
            ["docs/a.md", "docs/within.md", "other/x.md"]
        );
        assert!(
            !addresses(&offered(&home, &["**"]))
                .iter()
                .any(|path| path.contains("hostler.toml") || path.contains("/."))
        );
        assert_eq!(addresses(&offered(&home.join("none"), &["**"])), Vec::<String>::new());
        let listed = list(&offered(&home, &["docs/a.md"]));
        assert_eq!(
            (listed[0].mime_type.as_deref(), listed[0].size, listed[0].name.as_str()),
            (Some("text/markdown"), Some(3), "docs/a.md")
        );
    }

    #[test]
    fn a_file_is_read_as_text_or_as_a_blob() {
        let folder = tree();
        let offered = offered(&folder.path().join("home"), &["docs/**"]);
        let sent = |path: &str| json!(read(&offered, &format!("{FILES}{path}"), 100).unwrap());
        assert_eq!(
            (&sent("docs/a.md")["text"], &sent("docs/a.md")["mimeType"]),
            (&json!("# A"), &json!("text/markdown"))
        );
        assert_eq!((&sent("docs/raw")["text"], &sent("docs/raw")["mimeType"]), (&json!("plain"), &json!("text/plain")));
        assert_eq!(sent("docs/deep/b%20c.txt")["text"], "b");
        assert!(sent("docs/deep/pic.png")["blob"].is_string());
        assert_eq!(
            (&sent("docs/binary")["blob"], &sent("docs/binary")["mimeType"]),
            (&json!("//4="), &json!("application/octet-stream"))
        );
    }

    #[test]
    fn an_address_leads_to_offered_files_alone() {
        let folder = tree();
        let home = folder.path().join("home");
        let offered = offered(&home, &["docs/**"]);
        for path in [
            "docs/none.md",
            "other/x.md",
            "docs/../other/x.md",
            "docs/%2e%2e/other/x.md",
            "docs/..%2Fother/x.md",
            "../outside.md",
            "docs/out.md",
            "docs/within.md",
            "docs/absolute.md",
            "docs/circle/docs/a.md",
            "docs/circle/other/x.md",
            "docs/.env",
            "docs/.secret/key",
            "hostler.toml",
            "docs",
            "docs/",
            "docs//a.md",
            "docs/./a.md",
            "/etc/passwd",
            "docs/a%2Emd",
            "docs/a.md%00",
            "docs/b\n",
            "",
        ] {
            let found = read(&offered, &format!("{FILES}{path}"), 100);
            assert!(matches!(found, Err(FileError::NotFound)), "{path}: {found:?}");
        }
        assert!(matches!(read(&offered, "notes://a", 100), Err(FileError::NotFound)), "another address");
        assert!(matches!(read(&offered, &format!("{FILES}docs/raw"), 4), Err(FileError::TooLarge { size: 5 })));
        fs::remove_file(home.join("docs/a.md")).unwrap();
        assert!(matches!(read(&offered, &format!("{FILES}docs/a.md"), 100), Err(FileError::NotFound)), "deleted");
        pipe(&home.join("docs/pipe"));
        assert!(matches!(read(&offered, &format!("{FILES}docs/pipe"), 100), Err(FileError::NotFound)), "a pipe");
    }

    fn pipe(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn a_pipe_that_takes_the_place_of_a_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        pipe(&folder.path().join("pipe"));
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let (sender, opened) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(open_file(&dir, Path::new("pipe")).map(|_| ())));
        let opened = opened.recv_timeout(std::time::Duration::from_secs(20)).expect("it does not wait");
        assert!(matches!(opened, Err(FileError::NotFound)), "{opened:?}");
    }

    #[test]
    fn the_configuration_is_never_offered() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        fs::write(home.join("settings.toml"), "token").unwrap();
        symlink("settings.toml", home.join("link.toml")).unwrap();
        fs::hard_link(home.join("settings.toml"), home.join("copy.toml")).unwrap();
        fs::write(home.join("other.toml"), "").unwrap();
        let offered = offered(home, &["**"]);
        assert_eq!(addresses(&offered), ["other.toml"]);
        for name in ["settings.toml", "link.toml", "copy.toml"] {
            let found = read(&offered, &format!("{FILES}{name}"), 100);
            assert!(matches!(found, Err(FileError::NotFound)), "{name}: {found:?}");
        }
    }
}
