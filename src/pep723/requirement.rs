//! A first look at requirement strings, so that a slip is told with its line before uv is ever asked.

/// The name of the package in a requirement: `httpx` of `httpx[http2]>=0.27; python_version > "3.9"`.
pub fn package_of(requirement: &str) -> &str {
    let requirement = requirement.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    &requirement[..requirement.find(|c| !is_part(c)).unwrap_or(requirement.len())]
}

/// What is wrong with a dependency, when it cannot be one (PEP 508 in full is uv's business).
pub(super) fn dependency_problem(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let name = package_of(text);
    let rest = &text[name.len()..];
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let ends_well = name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !(begins_well && ends_well) {
        return Some("it does not begin with a package's name");
    }
    let follows = rest.trim_start().chars().next();
    let is_known = follows.is_none_or(|c| "[(<>=!~;@".contains(c));
    (!is_known).then_some("a package's name is followed by something that is no version, extra, marker or URL")
}

/// The place a `name @ place` dependency points at.
pub(super) fn direct_reference(text: &str) -> Option<&str> {
    let (_, place) = text.split_once('@')?;
    place.trim().split([' ', ';']).next()
}

/// Whether a `requires-python` is a list of version clauses, each with its operator.
pub(super) fn is_version_specifier(text: &str) -> bool {
    let clauses = text.split(',').map(str::trim);
    clauses.clone().all(|clause| clause.is_empty() || clause.starts_with(['<', '>', '=', '!', '~']))
}

/// Whether a path or URL means another place when the file is read from another folder.
pub(super) fn is_relative(place: &str) -> bool {
    let has_scheme = place.split_once(':').is_some_and(|(scheme, rest)| {
        // One letter is a Windows drive, which is absolute as well.
        !rest.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    !(place.is_empty() || has_scheme || place.starts_with(['/', '\\', '~', '$']))
}
