//! The frontmatter of Open WebUI's tools: a docstring with `requirements: requests, beautifulsoup4`, in place of a header.

use ruff_python_ast::ModModule;
use ruff_python_parser::Parsed;
use ruff_text_size::Ranged;

use crate::discovery::python::module::{Binding, Module};

/// What the frontmatter of a file requires, as a line of a header, and the 1-based line on which it stands.
pub(in crate::discovery::python) fn frontmatter(
    module: &Module<'_>,
    parsed: &Parsed<ModModule>,
) -> Option<(usize, String)> {
    let Some(Binding::Class(_)) = module.bindings.get("Tools") else { return None };
    let text = module.docstring?;
    let (place, line) = text.lines().enumerate().find(|(_, line)| line.trim_start().starts_with("requirements:"))?;
    let listed = line.split_once(':')?.1.split(',').map(str::trim).filter(|name| !name.is_empty());
    let packages: Vec<toml::Value> = listed.map(|name| name.to_owned().into()).collect();
    let first = module.lines.at(parsed.suite().first()?.start().to_usize());
    Some((first + place, format!("dependencies = {}\n", toml::Value::Array(packages))))
}
