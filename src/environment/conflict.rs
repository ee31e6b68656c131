//! Wishes of one header that no versions satisfy together.

use super::trouble::{Trouble, word_after};
use crate::pep723::{normalised, package_of};

impl Trouble<'_> {
    /// Dependencies that no versions satisfy together.
    pub(super) fn conflict(&self) -> Option<String> {
        let header = self.header?;
        if self.reason.contains("does not satisfy Python") || self.reason.contains("requested Python version") {
            let needed = word_after(self.reason, "depends on Python").map(|text| text.trim_end_matches([',', '.']));
            let needed = needed.unwrap_or(">=3.12");
            let (place, wish) = (self.place("requires-python"), header.requires_python.as_deref().unwrap_or("any"));
            return Some(format!(
                "a dependency needs Python {needed}, and requires-python allows others ({wish}){place}. Write \
                 requires-python = \"{needed}\", or take an older version of the dependency"
            ));
        }
        if let Some(told) = self.direct_conflict() {
            return Some(told);
        }
        let required = self.reason.split("you require ").skip(1).filter_map(|rest| rest.split([' ', ',']).next());
        let mut named: Vec<&str> = Vec::new();
        for package in required.map(package_of) {
            let wish = self.wish(package)?;
            if !named.contains(&wish) {
                named.push(wish);
            }
        }
        if named.len() < 2 || !self.reason.contains("depends on") {
            return None;
        }
        let named: Vec<String> = named.iter().map(|wish| format!("\"{wish}\"{}", self.place(wish))).collect();
        let named = named.join(" and ");
        Some(format!("no versions satisfy {named} together. Loosen the version of one of them"))
    }

    /// Wishes for one package that exclude each other: `you require six==1.16.0 and six==1.15.0, we can conclude`.
    fn direct_conflict(&self) -> Option<String> {
        let (_, rest) = self.reason.split_once("you require ")?;
        // Older versions of uv write `six ∅`, the empty set.
        let package = match rest.split_once(" ∅") {
            Some((package, _)) if !package.contains(' ') => package,
            _ => {
                let (one, rest) = rest.split_once(" and ")?;
                let other = rest.split([',', ' ']).next()?;
                let package = package_of(one);
                (normalised(package) == normalised(package_of(other))).then_some(package)?
            }
        };
        let wishes = &self.header?.dependencies;
        let wishes = wishes.iter().filter(|wish| normalised(package_of(wish)) == normalised(package));
        let named: Vec<String> = wishes.map(|wish| format!("\"{wish}\"{}", self.place(wish))).collect();
        match named.as_slice() {
            [] => None,
            [only] => Some(format!("the parts of {only} exclude each other: no version is both. Take one of them out")),
            all => Some(format!("{} exclude each other. Keep one of them", all.join(" and "))),
        }
    }
}
