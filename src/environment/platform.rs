//! For which systems a package exists, read from the tags that uv lists or from the words of its build.

use super::trouble::Trouble;

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
        let end = ["\n\n", " hint:"].iter().filter_map(|mark| list.find(mark)).min().unwrap_or(list.len());
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

    /// The one system that it exists for, when that is another than ours.
    pub(super) fn only(&self) -> Option<System> {
        let first = system(self.tags.first()?);
        let same = self.tags.iter().all(|tag| system(tag) == first);
        let only = SYSTEMS.into_iter().find(|known| known.name() == first)?;
        (same && first != system_here()).then_some(only)
    }
}

/// A system that packages are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Windows,
    MacOs,
    Linux,
}

const SYSTEMS: [System; 3] = [System::Windows, System::MacOs, System::Linux];

impl System {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Windows => "Windows",
            Self::MacOs => "macOS",
            Self::Linux => "Linux",
        }
    }

    /// What `sys.platform` is there.
    fn platform(self) -> &'static str {
        match self {
            Self::Windows => "win32",
            Self::MacOs => "darwin",
            Self::Linux => "linux",
        }
    }
}

/// The system that a build demands, when it is not ours: `PyObjC requires macOS to build`.
pub(super) fn system_meant(words: &str) -> Option<System> {
    let text = words.to_lowercase();
    let demands = ["requires ", "only ", "only works on ", "only supported on ", "only available on "];
    let named = |system: &System| {
        let name = system.name().to_lowercase();
        demands.iter().any(|demand| text.contains(&format!("{demand}{name}"))) || text.contains(&format!("{name} only"))
    };
    SYSTEMS.into_iter().find(|system| system.name() != system_here() && named(system))
}

impl Trouble<'_> {
    /// A package without packages for this system.
    pub(super) fn platform(&self) -> Option<String> {
        let platforms = Platforms::read(self.reason)?;
        let package = platforms.package;
        let python = python_in(self.reason).map(|python| format!(" (Python {python})")).unwrap_or_default();
        let (theirs, ours, place) = (platforms.theirs(), Platforms::ours(), self.place_of(package));
        let cure = self.without(package, platforms.only());
        Some(format!("{package}{place} has packages for {theirs} only, not for {ours}{python}. {cure}"))
    }

    /// What to do about a package that is for one other system. A mark alone only moves the failure to its import.
    pub(super) fn without(&self, package: &str, only: Option<System>) -> String {
        let Some(wish) = self.wish(package) else {
            return "Take another version of the dependency that needs it, or do without that one".to_owned();
        };
        let Some(platform) = only.map(System::platform) else { return "Take another package".to_owned() };
        format!(
            "Take another package, or mark it: \"{wish}; sys_platform == '{platform}'\", and import it only there, below \
             `if sys.platform == \"{platform}\":`"
        )
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
        assert_eq!(platforms.only(), Some(System::Windows));
        assert_eq!(python_in(stderr).as_deref(), Some("3.11"));
        let one = "Wheels are available for `x` (v1) on the following platform: `macosx_11_0_arm64`";
        assert_eq!(Platforms::read(one).unwrap().tags, ["macosx_11_0_arm64"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_build_says_for_which_system_it_is() {
        assert_eq!(system_meant("error: PyObjC requires macOS to build"), Some(System::MacOs));
        assert_eq!(system_meant("RuntimeError: this package is Windows only"), Some(System::Windows));
        assert_eq!(system_meant("error: requires Linux"), None, "that is what is here");
        assert_eq!(system_meant("error: windows.h: No such file"), None);
    }
}
