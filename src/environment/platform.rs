//! For which systems a package exists, read from the tags that uv lists.

/// The systems of one package.
pub(super) struct Platforms<'t> {
    pub package: &'t str,
    tags: Vec<&'t str>,
}

impl<'t> Platforms<'t> {
    /// What uv says of a package that has packages for other systems only.
    pub(super) fn read(stderr: &'t str) -> Option<Self> {
        let (_, rest) = stderr.split_once("Wheels are available for `")?;
        let package = rest.split('`').next()?;
        let (_, list) = rest.split_once("following platform")?;
        let list = list.split_once(':')?.1;
        let end = list.find("\n\n").unwrap_or(list.len());
        let tags: Vec<&str> = list[..end].split('`').skip(1).step_by(2).collect();
        (!tags.is_empty()).then_some(Self { package, tags })
    }

    /// `Windows`, `macOS and Linux`; where ours is among them, the tags themselves, since it is the processor that differs.
    pub(super) fn theirs(&self) -> String {
        let mut systems: Vec<&str> = self.tags.iter().map(|tag| system(tag)).collect();
        systems.dedup();
        systems.sort_unstable();
        systems.dedup();
        if systems.contains(&system_here()) { self.tags.join(", ") } else { systems.join(" and ") }
    }

    /// `Linux x86_64`
    pub(super) fn ours() -> String {
        format!("{} {}", system_here(), std::env::consts::ARCH)
    }

    /// What `sys_platform` is where the package exists, when that is one system and another than ours.
    pub(super) fn marker(&self) -> Option<&'static str> {
        let first = system(self.tags.first()?);
        let same = self.tags.iter().all(|tag| system(tag) == first);
        let marker = match first {
            "Windows" => "win32",
            "macOS" => "darwin",
            "Linux" => "linux",
            _ => return None,
        };
        (same && first != system_here()).then_some(marker)
    }
}

fn system(tag: &str) -> &str {
    match tag {
        tag if tag.starts_with("win") => "Windows",
        tag if tag.starts_with("macosx") => "macOS",
        tag if tag.contains("linux") => "Linux",
        tag => tag,
    }
}

fn system_here() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "macOS",
        other => other,
    }
}

/// The version of the interpreter that uv speaks of: `3.11` in `CPython 3.11`, or in its tag `cp311`.
pub(super) fn python_in(stderr: &str) -> Option<String> {
    let version = |text: &str| -> String { text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect() };
    if let Some((_, rest)) = stderr.split_once("CPython 3.") {
        return Some(format!("3.{}", version(rest).split('.').next().unwrap_or_default()));
    }
    let (_, rest) = stderr.split_once("(e.g., `cp3")?;
    Some(format!("3.{}", version(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_told_by_their_names() {
        let stderr = "hint: You require CPython 3.11 (`cp311`), but …\n\nhint: Wheels are available for `pywin32` (v312) on \
                      the following platforms: `win32`, `win_amd64`\n\n";
        let platforms = Platforms::read(stderr).unwrap();
        assert_eq!((platforms.package, platforms.theirs().as_str()), ("pywin32", "Windows"));
        assert_eq!(platforms.marker(), Some("win32"));
        assert_eq!(python_in(stderr).as_deref(), Some("3.11"));
        let one = "Wheels are available for `x` (v1) on the following platform: `macosx_11_0_arm64`";
        assert_eq!(Platforms::read(one).unwrap().tags, ["macosx_11_0_arm64"]);
    }
}
