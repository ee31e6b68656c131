//! Packages, and versions of them, that the index does not have. Where it is not the usual index, that one is doubted too.

use super::in_force::InForce;
use super::trouble::{Trouble, word_after};
use crate::pep723::package_of;

impl Trouble<'_> {
    pub(super) fn not_found(&self) -> Option<String> {
        let package = word_before(self.reason, " was not found in the")?;
        let right = self.meant(package).map(|right| format!(" (is \"{right}\" meant?)"));
        let right = right.unwrap_or_default();
        let named = self.named(package);
        if let Some(InForce { name, value, place }) = self.settings.other_index(self.header) {
            return Some(format!(
                "the index at {value} ({name} in {place}) has no {package} (wanted: {named}). Correct the name{right}, or the index"
            ));
        }
        Some(format!("{named} was not found in the package index. Correct the name{right} or take it out"))
    }

    pub(super) fn no_version(&self) -> Option<String> {
        if let Some(package) = word_after(self.reason, "there are no versions of ").map(package_of) {
            return Some(self.no_files(package));
        }
        let missing = word_after(self.reason, "there is no version of ");
        let missing = missing.or_else(|| word_after(self.reason, "only the following versions of "));
        let package = package_of(missing.or_else(|| only_available(self.reason))?);
        let named = self.named(package);
        if let Some(InForce { name, value, place }) = self.settings.other_index(self.header) {
            return Some(format!(
                "the index at {value} ({name} in {place}) has no version of {package} that fits {named}, if it is a package \
                 index at all. Write a version that it has, \"{package}\" for any, or correct the index"
            ));
        }
        Some(format!("no version of {package} fits {named}. Write a version that exists, or \"{package}\" for any"))
    }

    /// A page that lists no file: of a package without any, or of something that is no index.
    fn no_files(&self, package: &str) -> String {
        let named = self.named(package);
        match self.settings.other_index(self.header) {
            Some(InForce { name, value, place }) => format!(
                "the index at {value} ({name} in {place}) lists no file of {package} (wanted: {named}): it is no package \
                 index, or has none of it. Correct the index, or the name"
            ),
            None => {
                format!(
                    "the package index has no file of {package} (wanted: {named}). Correct the name, or take it out"
                )
            }
        }
    }
}

fn word_before<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    text.split_once(mark)?.0.split_whitespace().last()
}

/// The package of `only rich<=14.0 is available`.
fn only_available(reason: &str) -> Option<&str> {
    let (before, _) = reason.split_once(" is available")?;
    before.rsplit_once("only ").map(|(_, package)| package)
}
