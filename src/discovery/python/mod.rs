//! One Python tool file: bytes in, description out. A file that cannot be read is described as broken, never skipped.

mod all_imports;
mod annotations;
mod beyond;
mod changed;
mod classes;
mod constraints;
mod containers;
mod docstring;
mod entries;
mod fields;
mod foreign_classes;
mod frameworks;
mod functions;
mod generics;
mod handed;
mod known_types;
mod literals;
mod live;
mod model;
mod missing;
mod module;
mod names;
mod program;
mod public;
mod reach;
mod results;
mod roles;
mod schema;
mod scopes;
mod syntax;
mod types;

pub(in crate::discovery) use beyond::{Classes, calls_of, classes_of, methods_of};
pub use frameworks::{Called, Calls, PROGRAM};
pub use live::{Live, OpenNames};
pub use scopes::{Known, NeighbourScopes, Scopes};
pub use syntax::{Lines, SyntaxError, enough_for, syntax_error, unknown_to};

use std::fs;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use ruff_python_ast::ModModule;
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use sha2::{Digest, Sha256};

use self::all_imports::imports_at_start;
use self::docstring::Docstring;
use self::frameworks::{CLASS_RULE, frontmatter, low_level_tools, tools_for_others};
use self::functions::describe;
use self::missing::{warn_of_makers, warn_of_no_tools, warn_of_unmade, warn_of_unread};
use self::module::Module;
use self::program::{does_something, program};
use self::public::{public_functions, waiting_functions};
use self::syntax::{Nesting, dispose, too_many_brackets};
use crate::config::origin::Diagnosis;
use crate::config::tool::ToolLayer;
use crate::discovery::own_names::tell_apart;
use crate::discovery::packages::is_of_package;
use crate::discovery::several::{INNER_TOOLS, LOW_LEVEL};
use crate::discovery::{Function, Kind, Servers, Status, ToolFile, Warning};
use crate::pep723::{self, HeaderError, Metadata, is_identifier, nearest_identifier};

/// Larger files are not parsed: this takes a tenth of a second.
const LARGEST_FILE: u64 = 2 << 20;

fn too_deep() -> Diagnosis {
    Diagnosis::new("the code nests too deeply for Python", "split it")
}

/// What a file has that may add folders or modules to those that it can import.
const ADDING_MODULES: [&str; 14] = [
    "__path__",
    "addpackage",
    "site.main",
    "os.exec",
    "\"pip\"",
    "sys.path",
    "addsitedir",
    "sys.modules",
    "meta_path",
    "path_hooks",
    "__import__",
    "exec(",
    "from sys import",
    "import sys as",
];

/// Reads one file. [`ToolFile::helpers`] stays empty: only a scan knows the neighbours.
pub fn read_file(path: &Path) -> ToolFile {
    match bytes_of(path) {
        Ok(bytes) => read_bytes(path, &bytes),
        Err(reason) => {
            let mut file = blank(path, Kind::Internal);
            file.break_with(None, reason);
            file
        }
    }
}

/// Describes a file from its bytes.
pub fn read_bytes(path: &Path, bytes: &[u8]) -> ToolFile {
    read_bytes_with(path, bytes, Known::default())
}

/// The same with what is known beyond its text.
pub fn read_bytes_with(path: &Path, bytes: &[u8], known: Known<'_>) -> ToolFile {
    // A panic of the parser makes one file broken.
    let read = catch_unwind(AssertUnwindSafe(|| describe_file(path, bytes, known)));
    let mut file = read.unwrap_or_else(|_| {
        let mut file = blank(path, kind_of_undecodable(bytes));
        let fix = "simplify it, and please report it";
        file.break_with(None, Diagnosis::new("the Python parser failed on this file", fix));
        file
    });
    file.fingerprint = Sha256::digest(bytes).into();
    file
}

/// The text of a file, if that is a regular one and not too large.
pub(in crate::discovery) fn bytes_of(path: &Path) -> Result<Vec<u8>, Diagnosis> {
    let cannot = |error: std::io::Error| {
        Diagnosis::new(format!("the file cannot be read: {error}"), "check that it exists, and its permissions")
    };
    // Checked before it is opened: opening a pipe would block.
    let metadata = fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        return Err(Diagnosis::new("this is not a regular file", "replace it by a Python file, or rename it"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(LARGEST_FILE)).unwrap_or_default() + 1);
    let file = fs::File::open(path).map_err(cannot)?;
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > LARGEST_FILE {
        let what = format!("the file is larger than {} MB", LARGEST_FILE >> 20);
        return Err(Diagnosis::new(what, "move its data to another file"));
    }
    Ok(bytes)
}

fn describe_file(path: &Path, bytes: &[u8], known: Known<'_>) -> ToolFile {
    let mut file = blank(path, Kind::Internal);
    let source = match pep723::decode(bytes) {
        Ok(source) => source,
        Err(error) => {
            file.kind = kind_of_undecodable(bytes);
            break_header(&mut file, &error);
            return file;
        }
    };
    match pep723::read(&source, &Arc::new(path.to_owned())) {
        Ok(header) => file.header = header,
        Err(error) => {
            file.kind = Kind::Python;
            break_header(&mut file, &error);
        }
    }
    if file.header.is_some() {
        file.kind = Kind::Python;
    }
    let names_its_pack = match too_many_brackets(&source) {
        Some(line) => {
            file.break_with(Some(line), too_deep());
            false
        }
        None => read_module(&mut file, &source, known),
    };
    if !names_its_pack {
        name_pack(&mut file);
    }
    file
}

/// Returns whether the module sets `pack`.
fn read_module(file: &mut ToolFile, source: &str, known: Known<'_>) -> bool {
    let Some(parsed) = parse_unchecked(source, ParseOptions::from(Mode::Module)).try_into_module() else {
        return false;
    };
    let nesting = Nesting::of(&parsed);
    let names_its_pack = match nesting.too_many_blocks {
        Some(offset) => {
            file.break_with(Some(Lines::of(source).at(offset.to_usize())), too_deep());
            false
        }
        None => describe_module(file, source, &parsed, known),
    };
    if nesting.is_deep {
        dispose(parsed);
    }
    names_its_pack
}

/// The syntax tree of a Python text. `None` for a text that nests too deeply to be walked.
pub fn syntax_tree(source: &str) -> Option<Parsed<ModModule>> {
    if too_many_brackets(source).is_some() {
        return None;
    }
    let parse = || parse_unchecked(source, ParseOptions::from(Mode::Module)).try_into_module();
    let parsed = catch_unwind(parse).ok()??;
    let nesting = Nesting::of(&parsed);
    if nesting.is_deep || nesting.too_many_blocks.is_some() {
        dispose(parsed);
        return None;
    }
    Some(parsed)
}

fn describe_module(file: &mut ToolFile, source: &str, parsed: &Parsed<ModModule>, known: Known<'_>) -> bool {
    let path = file.path.clone();
    let mut module = Module::read(source, parsed.suite()).knowing(known, &path);
    if file.kind == Kind::Internal
        && let Some((line, toml)) = frontmatter(&module, parsed)
    {
        // What is no requirement is a sentence that begins with the word.
        if let Ok(header) = Metadata::from_toml(&toml, line, &Arc::new(file.path.clone())) {
            file.kind = Kind::Python;
            file.header = Some(header);
        }
    }
    warn_of_makers(&mut module);
    warn_of_unread(&mut module, source);
    warn_of_unmade(&mut module, source);
    let mut described = functions_of(&mut module, parsed);
    tell_apart(&mut described, |_| None);
    described.sort_by_key(|function| function.line);
    file.functions = described;
    file.description = module.docstring.and_then(|text| Docstring::parse(text).summary);
    let is_program = module.is_program || file.functions.is_empty() || parsed.suite().iter().any(does_something);
    file.program = is_program.then(|| Box::new(program(&module, parsed.suite())));
    if let Some(error) = syntax_error(source, parsed) {
        file.break_with(Some(module.lines.at(error.range.start)), error.reason);
    }
    let names_its_pack = take_pack(file, &mut module);
    let has_refused =
        module.warnings.iter().any(|it| [roles::RULE, CLASS_RULE, INNER_TOOLS, LOW_LEVEL].contains(&&*it.rule));
    if file.functions.is_empty() && file.is_ready() && !has_refused {
        warn_of_no_tools(&mut module);
    }
    module.warnings.sort_by_key(|warning: &Warning| warning.line);
    file.borrowed = module.take_borrowed();
    file.servers = module.servers;
    file.imports = module.imports.into_iter().collect();
    file.adds_modules = ADDING_MODULES.iter().any(|word| source.contains(word));
    file.imports_at_start = imports_at_start(parsed.suite());
    file.open = module.open.into_inner();
    file.warnings = module.warnings;
    names_its_pack
}

/// Its functions that are tools, resources and prompts.
fn functions_of<'a>(module: &mut Module<'a>, parsed: &'a Parsed<ModModule>) -> Vec<Function> {
    let public = public_functions(module, parsed.suite());
    module.servers.marks |= public.iter().any(|served| served.is_bound);
    let mut described: Vec<Function> = public.into_iter().filter_map(|function| describe(module, function)).collect();
    described.extend(low_level_tools(module, parsed.suite()));
    module.servers.listing.tools = tools_for_others(module, parsed.suite());
    for (mut waiting, functions, server) in waiting_functions(module) {
        waiting.functions = functions.into_iter().filter_map(|one| describe(module, one)).collect();
        waiting.functions.extend(server.into_iter().flat_map(|server| server.tools(module, parsed.suite())));
        if !waiting.functions.is_empty() {
            module.servers.waiting.push(waiting);
        }
    }
    for function in &mut described {
        function.mounted_by(&module.servers.mounts);
    }
    described
}

/// The pack that the module names. Returns whether it names one.
fn take_pack(file: &mut ToolFile, module: &mut Module<'_>) -> bool {
    match module.pack {
        Some((line, Some(name))) => {
            name.clone_into(&mut file.pack);
            if !is_identifier(name) {
                file.break_with(
                    Some(line),
                    invalid_pack(name, &format!("write `pack = \"{}\"`", nearest_identifier(name))),
                );
            }
            true
        }
        Some((line, None)) => {
            module.warn(line, "exports", "`pack` is not a literal string and is ignored", "write it in quotes");
            false
        }
        None => false,
    }
}

/// The pack of a file that does not set one: the header's, else the file's name.
fn name_pack(file: &mut ToolFile) {
    if let Some(pack) = file.header.as_ref().and_then(|header| header.pack.as_ref()) {
        file.pack.clone_from(&pack.value);
        return;
    }
    // `my-tool.py`, `my tool.py`, `01_basics.py`
    if file.pack.is_ascii() {
        file.pack = nearest_identifier(file.pack.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    }
    if !is_identifier(&file.pack) {
        let fix = format!("rename the file, or write `pack = \"{}\"` in it", nearest_identifier(&file.pack));
        file.break_with(None, invalid_pack(&file.pack, &fix));
    }
}

fn invalid_pack(name: &str, fix: &str) -> Diagnosis {
    let what = format!("`{name}` is not a valid pack name: use letters, digits and _, and no digit first");
    Diagnosis::new(what, fix)
}

/// The name of a file; of a package's `__init__.py` and `__main__.py`, that of the package.
fn stem(path: &Path) -> String {
    let named = if is_of_package(path) { path.parent().and_then(Path::file_name) } else { path.file_stem() };
    named.map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn break_header(file: &mut ToolFile, error: &HeaderError) {
    file.break_with(Some(error.line), error.diagnosis());
}

/// The kind of a file whose text cannot be decoded.
fn kind_of_undecodable(bytes: &[u8]) -> Kind {
    let opening = b"/// script";
    let is_python = bytes.windows(opening.len()).any(|window| window == opening);
    if is_python { Kind::Python } else { Kind::Internal }
}

pub(in crate::discovery) fn blank(path: &Path, kind: Kind) -> ToolFile {
    ToolFile {
        path: path.to_owned(),
        pack: stem(path),
        kind,
        header: None,
        description: None,
        functions: Vec::new(),
        program: None,
        left_out: Vec::new(),
        status: Status::Ready,
        fingerprint: [0; 32],
        warnings: Vec::new(),
        servers: Servers::default(),
        imports: Vec::new(),
        imports_at_start: Vec::new(),
        adds_modules: false,
        open: OpenNames::new(),
        borrowed: Vec::new(),
        helpers: Vec::new(),
        beside: None,
        is_for_first_sdk: false,
        rank: 0,
        overrides: Vec::new(),
        served_as: None,
        declared: ToolLayer::default(),
    }
}
