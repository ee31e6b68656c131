//! The parts of requirement strings.

/// The name of the package in a requirement: `httpx` of `httpx[http2]>=0.27; python_version > "3.9"`.
pub fn package_of(requirement: &str) -> &str {
    let requirement = requirement.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    &requirement[..requirement.find(|c| !is_part(c)).unwrap_or(requirement.len())]
}

/// The place a `name @ place` dependency points at.
pub(super) fn direct_reference(text: &str) -> Option<&str> {
    let (_, place) = text.split_once('@')?;
    place.trim().split([' ', ';']).next()
}

/// Whether a path or URL means another place when the file is read from another folder.
pub(super) fn is_relative(place: &str) -> bool {
    let has_scheme = place.split_once(':').is_some_and(|(scheme, rest)| {
        // One letter is a Windows drive, which is absolute as well.
        !rest.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    !(place.is_empty() || has_scheme || place.starts_with(['/', '\\', '~', '$']))
}
