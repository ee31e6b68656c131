//! What tools of Open WebUI need: their frontmatter is a docstring with `requirements: requests, beautifulsoup4`, in place of a header.

use ruff_python_ast::ModModule;
use ruff_python_parser::Parsed;
use ruff_text_size::Ranged;

use super::classes::is_of_open_webui;
use crate::discovery::python::module::{Binding, Module};
use crate::pep723::{normalised, package_of, requirement_for};

/// Packages that Open WebUI has itself, and its tools therefore do not declare.
const PROVIDED: [&str; 20] = [
    "aiofiles",
    "aiohttp",
    "beautifulsoup4",
    "fastapi",
    "httpx",
    "jinja2",
    "loguru",
    "markdown",
    "numpy",
    "openai",
    "openpyxl",
    "pandas",
    "pillow",
    "psutil",
    "pydantic",
    "pypdf",
    "pyyaml",
    "requests",
    "tiktoken",
    "validators",
];

/// What a file of Open WebUI requires, as a line of a header, and the 1-based line on which it stands: what its frontmatter lists, and what
/// it imports of the packages that Open WebUI has.
pub(in crate::discovery::python) fn frontmatter(
    module: &Module<'_>,
    parsed: &Parsed<ModModule>,
) -> Option<(usize, String)> {
    let Some(Binding::Class(class)) = module.bindings.get("Tools") else { return None };
    let (mut packages, line) = listed(module, parsed).unwrap_or_default();
    if is_of_open_webui(module, class) {
        let tops = module.imports.iter().filter_map(|name| name.split('.').next());
        let imported = tops.filter_map(|name| requirement_for(name, &[]));
        let is_listed =
            |packages: &[String], name: &str| packages.iter().any(|text| normalised(package_of(text)) == name);
        for package in imported.filter(|name| PROVIDED.contains(name)) {
            if !is_listed(&packages, package) {
                packages.push(package.to_owned());
            }
        }
    }
    let packages: Vec<toml::Value> = packages.into_iter().map(toml::Value::String).collect();
    (!packages.is_empty()).then(|| (line.max(1), format!("dependencies = {}\n", toml::Value::Array(packages))))
}

fn listed(module: &Module<'_>, parsed: &Parsed<ModModule>) -> Option<(Vec<String>, usize)> {
    let text = module.docstring?;
    let (place, line) = text.lines().enumerate().find(|(_, line)| line.trim_start().starts_with("requirements:"))?;
    let listed = line.split_once(':')?.1.split(',').map(str::trim).filter(|name| !name.is_empty());
    let first = module.lines.at(parsed.suite().first()?.start().to_usize());
    Some((listed.map(str::to_owned).collect(), first + place))
}
