//! Requirements and versions of Python: which are valid, which modules a package provides, which versions a range allows.

use std::str::FromStr;
use std::sync::LazyLock;

use pep440_rs::{Version, VersionSpecifiers};

/// The oldest Python that workers run on.
pub const OLDEST_PYTHON: (u64, u64) = (3, 9);
/// Minor versions that are tried: more than will exist for some years.
const MINORS: u64 = 40;
/// Patch versions that are tried: more than any minor version has had.
const PATCHES: u64 = 30;

/// The name of the package in a requirement: `httpx` of `httpx[http2]>=0.27; python_version > "3.9"`.
pub fn package_of(requirement: &str) -> &str {
    let requirement = requirement.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    &requirement[..requirement.find(|c| !is_part(c)).unwrap_or(requirement.len())]
}

/// What to write instead of a text that is not a requirement. Markers and URLs are left to uv.
pub(super) fn problem_of_requirement(text: &str) -> Option<String> {
    let text = text.trim();
    let name = package_of(text);
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    if !(name.starts_with(is_edge) && name.ends_with(is_edge)) {
        let address = if text.contains("://") { text } else { "https://…" };
        return Some(format!("write it like \"httpx>=0.27\" or \"NAME @ {address}\""));
    }
    let rest = text[name.len()..].trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']').map(|(_, rest)| rest.trim_start()),
        None => Some(rest),
    };
    let is_valid = rest.is_some_and(|rest| {
        let versions = rest.split(';').next().unwrap_or_default();
        let versions = versions.trim().trim_start_matches('(').trim_end_matches(')').trim_end_matches(',').trim();
        rest.starts_with('@') || versions.is_empty() || VersionSpecifiers::from_str(versions).is_ok()
    });
    (!is_valid).then(|| format!("write it like \"{name}>=1.2\", or \"{name}\" for any version"))
}

/// What to write instead of a text that is not a range of versions.
pub(super) fn problem_of_python(text: &str) -> Option<String> {
    VersionSpecifiers::from_str(text).err()?;
    let text = text.trim();
    let example = if Version::from_str(text).is_ok() { text } else { "3.11" };
    Some(format!("write requires-python = \">={example}\""))
}

/// The place a `name @ place` dependency points at.
pub(super) fn direct_reference(text: &str) -> Option<&str> {
    let (_, place) = text.split_once('@')?;
    place.trim().split([' ', ';']).next()
}

/// Whether a path or URL means another place when the file is in another folder.
pub(super) fn is_relative(place: &str) -> bool {
    let has_scheme = place.split_once(':').is_some_and(|(scheme, rest)| {
        // One letter is a Windows drive, which is absolute as well.
        !rest.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    !(place.is_empty() || has_scheme || place.starts_with(['/', '\\', '~', '$']))
}

/// The name of a distribution as indexes compare it: `Ruamel.YAML` is `ruamel-yaml`.
pub fn normalised(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        let c = if matches!(c, '-' | '_' | '.') { '-' } else { c.to_ascii_lowercase() };
        if !(c == '-' && text.ends_with('-')) {
            text.push(c);
        }
    }
    text
}

const LISTED: &str = include_str!("packages.txt");
/// Begins the packages that are known, and not so well that a module of this name is one.
const FURTHER: &str = "# Further ones";

/// Packages with their top-level modules, one package a line; without modules, the module has the package's name.
static PACKAGES: LazyLock<Vec<(&str, Vec<&str>)>> = LazyLock::new(|| {
    let lines = LISTED.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            (words.next().unwrap_or_default(), words.collect())
        })
        .collect()
});

/// Packages that share a module: `google-cloud-storage` provides `google`.
const NAMESPACES: &[&str] =
    &["google", "azure", "zope", "opentelemetry", "llama", "sphinxcontrib", "ruamel", "backports", "jaraco"];

/// Packages that always install others, whose modules are part of how they are used.
const NEEDED_BY: &[(&str, &[&str])] = &[
    ("agno", &["pydantic", "httpx", "typing_extensions"]),
    ("anthropic", &["pydantic", "httpx", "anyio", "typing_extensions"]),
    ("autogen-agentchat", &["autogen_core", "pydantic", "typing_extensions"]),
    ("autogen-core", &["pydantic", "typing_extensions"]),
    ("camel-ai", &["pydantic", "openai"]),
    ("claude-agent-sdk", &["mcp", "anyio", "typing_extensions"]),
    ("crewai", &["pydantic", "openai", "httpx"]),
    ("fastapi", &["pydantic", "starlette", "anyio", "typing_extensions"]),
    ("boto3", &["botocore"]),
    ("fastmcp", &["mcp", "pydantic", "httpx", "starlette", "uvicorn", "anyio", "typing_extensions"]),
    ("google-adk", &["pydantic", "httpx", "fastapi", "typing_extensions"]),
    ("google-genai", &["pydantic", "httpx", "anyio", "typing_extensions"]),
    ("langchain", &["langchain_core", "langgraph", "pydantic", "typing_extensions"]),
    ("langchain-core", &["pydantic", "typing_extensions"]),
    (
        "mcp",
        &[
            "mcp_types",
            "pydantic",
            "pydantic_core",
            "pydantic_settings",
            "httpx",
            "starlette",
            "uvicorn",
            "anyio",
            "click",
            "typing_extensions",
        ],
    ),
    ("langchain-anthropic", &["langchain_core", "anthropic", "pydantic"]),
    ("langchain-community", &["langchain_core", "pydantic", "requests", "sqlalchemy"]),
    ("langchain-openai", &["langchain_core", "openai", "pydantic"]),
    ("langgraph", &["langchain_core", "pydantic", "typing_extensions"]),
    ("llama-index-core", &["pydantic", "httpx", "typing_extensions"]),
    ("openai", &["pydantic", "httpx", "anyio", "typing_extensions"]),
    ("openai-agents", &["openai", "pydantic", "typing_extensions"]),
    ("pydantic", &["pydantic_core", "typing_extensions", "annotated_types"]),
    ("pydantic-ai", &["pydantic", "httpx", "typing_extensions"]),
    ("pydantic-ai-slim", &["pydantic", "httpx", "typing_extensions"]),
    ("pydantic-settings", &["pydantic"]),
    ("semantic-kernel", &["pydantic", "openai"]),
    ("sqlmodel", &["pydantic", "sqlalchemy"]),
    ("strands-agents", &["pydantic", "botocore", "boto3", "typing_extensions"]),
    ("typer", &["click", "rich"]),
    ("uvicorn", &["click"]),
];

/// Whether a package is known, or named so, that it provides a top-level module.
pub fn brings(package: &str, module: &str) -> bool {
    let package = normalised(package);
    if PACKAGES.iter().any(|(name, modules)| *name == package && modules.contains(&module)) {
        return true;
    }
    if NEEDED_BY.iter().any(|(name, modules)| *name == package && modules.contains(&module)) {
        return true;
    }
    // `python-telegram-bot` provides `telegram`.
    let module = normalised(module);
    let bare = package.strip_prefix("python-").unwrap_or(&package);
    let bare = bare.strip_suffix("-python").unwrap_or(bare);
    let bare = bare.strip_suffix("-py").unwrap_or(bare);
    let first = package.split('-').next().unwrap_or_default();
    // `wikipedia-api` provides `wikipediaapi`.
    let joined = package.replace('-', "");
    // `llama-index-core` provides `llama_index`.
    let is_part = module.contains('-') && package.strip_prefix(&*module).is_some_and(|rest| rest.starts_with('-'));
    package == module
        || bare == module
        || joined == module
        || is_part
        || (NAMESPACES.contains(&first) && first == module)
}

/// The package that provides a module, where its name differs or is a namespace's.
pub(super) fn distribution_of(module: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|(_, modules)| modules.contains(&module)).map(|(name, _)| *name)
}

/// What to declare for a top-level module that a file imports like this: the package, in a release that has all of these modules.
pub fn requirement_for(module: &str, imports: &[String]) -> Option<&'static str> {
    let begins = |import: &String, with: &str| import == with || import.starts_with(&format!("{with}."));
    let among = |modules: &[&str]| imports.iter().any(|import| modules.iter().any(|module| begins(import, module)));
    let of_namespace = || {
        let mut parts = PARTS.iter().filter(|(part, _)| part.split('.').next() == Some(module));
        parts.find(|(part, _)| imports.iter().any(|import| begins(import, part)))
    };
    if let Some((_, package)) = of_namespace() {
        return Some(package);
    }
    match distribution_of(module) {
        Some(package) => Some(package),
        None if module == "mcp" && among(OLDER) && !among(NEWER) => Some("mcp<2"),
        None => PACKAGES.iter().find(|(name, _)| *name == module).map(|(name, _)| *name),
    }
}

/// The package of a part of a module that several packages share, for a module that was not found: `google.cloud`.
pub fn package_of_part(module: &str, imports: &[String]) -> Option<&'static str> {
    let is_inside = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}."));
    let is_imported = |part: &str| imports.iter().any(|import| is_inside(import, part));
    let is_meant = |part: &str| part.contains('.') && (is_inside(part, module) || is_inside(module, part));
    PARTS.iter().find(|(part, _)| is_meant(part) && is_imported(part)).map(|(_, package)| *package)
}

/// What provides a part of a module that several packages share.
const PARTS: &[(&str, &str)] = &[
    ("google.adk", "google-adk"),
    ("google.genai", "google-genai"),
    ("google.auth", "google-auth"),
    ("google.oauth2", "google-auth"),
    ("google.protobuf", "protobuf"),
    ("google.cloud.bigquery", "google-cloud-bigquery"),
    ("google.cloud.storage", "google-cloud-storage"),
    ("google.cloud.aiplatform", "google-cloud-aiplatform"),
    ("azure.identity", "azure-identity"),
    ("azure.storage.blob", "azure-storage-blob"),
    ("azure.ai.projects", "azure-ai-projects"),
    ("opentelemetry.sdk", "opentelemetry-sdk"),
    ("opentelemetry", "opentelemetry-api"),
];

/// Modules that the second release of the SDK of MCP no longer has, or has with other names in them.
const OLDER: &[&str] = &["mcp.server.fastmcp", "mcp.server.FastMCP", "mcp.server.Server", "mcp.server.lowlevel.Server"];
/// Those that only the second one has.
const NEWER: &[&str] = &["mcp_types", "mcp.server.mcpserver", "mcp.server.context", "mcp.server.ServerRequestContext"];

/// The modules that a package provides, as far as is known.
pub fn modules_of(package: &str) -> Vec<String> {
    let package = normalised(package);
    match PACKAGES.iter().find(|(name, modules)| *name == package && !modules.is_empty()) {
        Some((_, modules)) => modules.iter().map(|module| (*module).to_owned()).collect(),
        None => vec![package.replace('-', "_")],
    }
}

/// Whether a module belongs to a package so well known that its name is unlikely to be a typo.
pub fn is_well_known(module: &str) -> bool {
    provide(&PACKAGES[..*WELL_KNOWN], module)
}

/// Whether a package is listed that provides a module.
pub fn is_listed(module: &str) -> bool {
    provide(&PACKAGES, module)
}

fn provide(packages: &[(&str, Vec<&str>)], module: &str) -> bool {
    packages.iter().any(|(name, modules)| *name == module || modules.contains(&module))
}

/// How many of the packages are well known.
static WELL_KNOWN: LazyLock<usize> = LazyLock::new(|| {
    let before = LISTED.split(FURTHER).next().unwrap_or_default();
    before.lines().filter(|line| !line.starts_with('#')).count()
});

/// Why no worker can ever run on the versions that a range allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsupportedPython {
    /// It allows no version that exists.
    NoVersion,
    /// It only allows versions older than workers run on.
    TooOld,
}

impl UnsupportedPython {
    /// Judges a range by its text.
    pub fn of(text: &str) -> Option<Self> {
        Self::of_range(&VersionSpecifiers::from_str(text).ok()?)
    }

    /// Judges a range. `None` where workers run on some version of it.
    pub fn of_range(range: &VersionSpecifiers) -> Option<Self> {
        if oldest_minor(range).is_some() {
            return None;
        }
        let mut older = (0..OLDEST_PYTHON.1).map(|minor| (OLDEST_PYTHON.0, minor)).chain([(2, 7)]);
        Some(if older.any(|minor| some_patch_fits(minor, range)) { Self::TooOld } else { Self::NoVersion })
    }

    /// What is wrong with a range, which the message calls by `name`, and what to write instead.
    pub fn explain(self, name: &str) -> (String, &'static str) {
        match self {
            Self::NoVersion => (format!("no version of Python satisfies {name}"), "write a range like \">=3.11\""),
            Self::TooOld => (
                format!("{name} only allows versions older than 3.9, the oldest that hostler supports"),
                "write \">=3.9\" or newer",
            ),
        }
    }
}

/// The oldest version of this range that workers run on.
pub fn oldest_minor(range: &VersionSpecifiers) -> Option<(u64, u64)> {
    (OLDEST_PYTHON.1..MINORS).map(|minor| (OLDEST_PYTHON.0, minor)).find(|minor| some_patch_fits(*minor, range))
}

/// Whether the range allows some patch version of this minor version.
pub fn some_patch_fits((major, minor): (u64, u64), range: &VersionSpecifiers) -> bool {
    (0..PATCHES).any(|patch| range.contains(&Version::new([major, minor, patch])))
}
