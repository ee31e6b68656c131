//! Tools out of a catalogue, by what is said of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::catalogue::{Catalogue, Tool};
use crate::config::declared_policy::Mode;

/// Which tools are meant. What is not said leaves all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Those that may be called in this mode.
    pub mode: Option<Mode>,
    /// Those of this category.
    pub category: Option<String>,
    /// Those with this tag.
    pub tag: Option<String>,
    /// Those of this pack.
    pub pack: Option<String>,
    /// Those of this kind, by its word.
    pub kind: Option<&'static str>,
}

impl Filter {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        let Self { mode, category, tag, pack, kind } = self;
        mode.is_none() && category.is_none() && tag.is_none() && pack.is_none() && kind.is_none()
    }

    /// Whether a tool is meant.
    pub fn admits(&self, tool: &Tool) -> bool {
        let (facts, file) = (&tool.settings.policy, &tool.entry.file);
        let category = facts.category.as_ref().map(|category| &category.value);
        let tags = || facts.tags.iter().flat_map(|tags| &tags.value);
        self.mode.is_none_or(|mode| facts.allows(mode))
            && self.category.as_ref().is_none_or(|wanted| category == Some(wanted))
            && self.tag.as_ref().is_none_or(|wanted| tags().any(|tag| tag == wanted))
            && self.pack.as_ref().is_none_or(|wanted| *wanted == file.pack)
            && self.kind.is_none_or(|wanted| wanted == tool.entry.kind_word())
    }
}

impl Filter {
    /// What it wants that no tool has, with what there is instead.
    pub fn missed(&self, catalogue: &Catalogue) -> Option<String> {
        let facts = || catalogue.ready().map(|tool| &tool.settings.policy);
        let categories = facts().filter_map(|facts| facts.category.as_ref()).map(|category| category.value.as_str());
        let tags = facts().filter_map(|facts| facts.tags.as_ref()).flat_map(|tags| &tags.value).map(String::as_str);
        let packs = catalogue.ready().map(|tool| tool.entry.file.pack.as_str());
        missing("category", self.category.as_deref(), categories)
            .or_else(|| missing("tag", self.tag.as_deref(), tags))
            .or_else(|| missing("pack", self.pack.as_deref(), packs))
    }
}

fn missing<'c>(what: &str, wanted: Option<&str>, there: impl Iterator<Item = &'c str>) -> Option<String> {
    let there: BTreeSet<&str> = there.collect();
    let wanted = wanted.filter(|wanted| !there.contains(wanted))?;
    let instead = match there.len() {
        0 => "none has any".to_owned(),
        _ => format!("there are {}", there.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Some(format!("no tool has the {what} `{wanted}`; {instead}"))
}

impl Catalogue {
    /// The tools that can be called and that a filter means.
    pub fn list(&self, filter: &Filter) -> impl Iterator<Item = &Arc<Tool>> {
        self.ready().filter(|tool| filter.admits(tool))
    }
}
