//! Servers of several files: what a helper offers by the server of another file is a tool of the file that imports it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::mounted::{Mount, Mounted};
use super::reached::{KnownCalls, Reached, Way};
use super::{Exported, Function, Given, OpenNames, Program, ToolFile, Warning};
use crate::config::origin::Diagnosis;

/// What a file says about the servers and toolkits of frameworks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Servers {
    /// Whether it makes a server.
    pub makes: bool,
    /// Whether frameworks make its functions tools.
    pub marks: bool,
    /// The servers of other modules that do, dotted: `app.mcp`; `.` for one that a function of it is given.
    pub of: Vec<String>,
    /// Whether it runs a server of another module.
    pub runs: bool,
    /// What its `__all__` names.
    pub names: Option<Vec<String>>,
    /// Functions of other modules that it makes tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<Given>,
    /// Servers that it mounts with a prefix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Its commands of click and typer.
    #[serde(default, skip_serializing_if = "Program::is_empty")]
    pub program: Program,
    /// Tools that its functions make where they are given what they need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// What it offers of other modules by `__all__` and by base classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exported: Vec<Exported>,
    /// What it has for servers of the SDK's low level.
    #[serde(default, skip_serializing_if = "Listing::is_empty")]
    pub listing: Listing,
}

impl Servers {
    /// Whether a server of another file may have tools of this one.
    pub(super) fn offer_to_others(&self) -> bool {
        self.marks && !self.of.is_empty()
            || !self.waiting.is_empty()
            || !self.given.is_empty()
            || !self.listing.tools.is_empty()
    }
}

/// Tools that servers of the MCP SDK's low level list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// Whether functions of the file are decorated as handlers of such a server.
    pub has_handlers: bool,
    /// What the worker knows the function by that is called for its tools, where it lists some from elsewhere.
    pub handler: Option<String>,
    /// Tools for such a server of another file. Their symbols lack that function.
    pub tools: Vec<Function>,
}

impl Listing {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The tools of a function that needs arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// The function or method: `register`, `Server.register`.
    pub maker: String,
    /// The 1-based line of its name.
    pub line: usize,
    /// Whether it makes them tools of a server or agent that it has or is given.
    pub is_of_server: bool,
    /// Whether further ones have names that are computed.
    pub computes_names: bool,
    /// Its tools.
    pub functions: Vec<Function>,
}

/// Begins what the worker knows tools and types of helpers by: `beside:tools/notes.py:add_note`.
pub(super) const BESIDE: &str = "beside:";
/// Begins what it knows tools by that a function makes: `made:register:12:add_note`.
pub(super) const MADE: &str = "made:";
/// The rule of `check` about a file that offers nothing.
pub(super) const NO_TOOLS: &str = "no-tools";
/// Rules of `check` about what is served, which hold for helpers as well.
const OF_SERVING: [&str; 4] = [INNER_TOOLS, LOW_LEVEL, "class", "name"];
/// What to do about a server without tools.
pub(super) const MARK: &str =
    "mark functions of this file or of a file that it imports with its decorator, `@mcp.tool()`";
/// The rule about tools that a low-level server computes.
pub(super) const LOW_LEVEL: &str = "low-level-server";
/// The rule about functions that make tools.
pub(super) const INNER_TOOLS: &str = "inner-tools";

impl ToolFile {
    /// Adds the tools of helpers to a file that makes or runs a server, marks tools or has no functions. Any other only uses its helpers.
    /// Those `beyond` are helpers of another such file, which has their tools.
    pub(super) fn join(
        &mut self,
        helpers: &HashMap<PathBuf, ToolFile>,
        beyond: &HashSet<&Path>,
        calls: &mut KnownCalls,
    ) {
        self.take_tools(helpers, beyond, calls);
        self.take_exported(helpers, beyond);
        self.tell_tools_apart();
    }

    fn take_tools(&mut self, helpers: &HashMap<PathBuf, ToolFile>, beyond: &HashSet<&Path>, calls: &mut KnownCalls) {
        let own = self.helpers.iter().filter(|path| !beyond.contains(path.as_path()));
        let mut own: Vec<Cow<'_, ToolFile>> = own.filter_map(|path| helpers.get(path)).map(Cow::Borrowed).collect();
        let calls = self.call_makers(&mut own, calls);
        if self.attach_commands(&own.iter().map(|helper| &**helper).collect::<Vec<_>>()) {
            self.warnings.retain(|warning| warning.rule != NO_TOOLS);
        }
        let Servers { makes, marks, runs, .. } = self.servers;
        let is_host =
            calls || makes || marks || self.functions.is_empty() || runs && own.iter().any(|it| it.servers.makes);
        if self.functions.is_empty()
            && !makes
            && let Some(helper) =
                own.iter().find(|it| it.servers.makes && it.warnings.iter().any(|one| one.rule == NO_TOOLS))
        {
            self.name_the_server(&helper.path.clone());
        }
        // What needs no server, such as a tool of an agent, is the helper's own.
        let by_server = |helper: &&ToolFile| helper.servers.makes || !helper.servers.of.is_empty();
        let own: Vec<&ToolFile> = own.iter().map(|helper| &**helper).collect();
        self.take_listed(&own);
        let offering: Vec<&ToolFile> =
            own.iter().copied().filter(|helper| helper.servers.marks).filter(by_server).collect();
        if !is_host || offering.is_empty() && self.servers.given.is_empty() {
            return;
        }
        self.run_a_server();
        let mut given = self.given(&self.path, &own);
        given.extend(offering.iter().flat_map(|helper| helper.given(&self.path, &own)));
        let mut taken = self.functions.iter().map(Function::identity).collect();
        self.take_functions(&given, &mut taken);
        let mounted = Mounted::of(self, &own);
        let renamed: Vec<Vec<Option<Function>>> = offering
            .iter()
            .map(|helper| helper.functions.iter().map(|it| mounted.named(&helper.path, it)).collect())
            .collect();
        if !offering.is_empty() || !given.is_empty() {
            self.warnings.retain(|warning| warning.rule != NO_TOOLS);
        }
        for (helper, renamed) in offering.into_iter().zip(renamed) {
            self.take(helper, renamed, &mut taken);
        }
    }

    /// Adds the tools of functions that it calls with what they need, to itself and to its helpers. Returns whether it certainly calls
    /// such of helpers.
    fn call_makers(&mut self, helpers: &mut [Cow<'_, ToolFile>], calls: &mut KnownCalls) -> bool {
        let waits = |file: &ToolFile| !file.servers.waiting.is_empty();
        if !waits(self) && !helpers.iter().any(|helper| waits(helper)) {
            return false;
        }
        let reached = Reached::of(&self.path, &self.helpers, calls);
        let own_path = self.path.clone();
        let place = |path: &Path| place_within(&own_path, path);
        let mut calls = false;
        for helper in helpers.iter_mut().filter(|helper| waits(helper)) {
            if helper.ways(&reached, true).next().is_some() {
                calls |= helper.ways(&reached, true).any(|(it, _)| reached.is_certain(&helper.path, &it.maker));
                let mut called = ToolFile::clone(helper);
                called.add_called(&reached, true, place);
                *helper = Cow::Owned(called);
            }
        }
        self.add_called(&reached, false, place);
        calls
    }

    /// Whether it has tools, if its functions are called with what they need, and no others.
    pub(super) fn only_waits(&self) -> bool {
        self.functions.is_empty() && !self.servers.waiting.is_empty()
    }

    /// The functions of a file that are called with what they need, and how.
    fn ways<'f>(&'f self, reached: &'f Reached, of_server: bool) -> impl Iterator<Item = (&'f Waiting, Way)> {
        let waiting = self.servers.waiting.iter().filter(move |waiting| waiting.is_of_server || !of_server);
        waiting.filter_map(|waiting| Some((waiting, reached.way_to(&self.path, &waiting.maker)?)))
    }

    fn add_called(&mut self, reached: &Reached, of_server: bool, place: impl Fn(&Path) -> Option<String>) {
        let mut taken: HashSet<_> = self.functions.iter().map(Function::identity).collect();
        let (mut added, mut lines) = (Vec::new(), HashSet::new());
        for (waiting, way) in self.ways(reached, of_server) {
            let way = match way {
                Way::Runs => Some(String::new()),
                Way::By { path, function } => place(&path).map(|place| format!("{place}/{function}")),
            };
            let Some(way) = way else { continue };
            let functions = waiting.functions.iter().filter(|it| taken.insert(it.identity()) || it.role.is_tool());
            added.extend(functions.map(|function| function.made_by(&way)));
            lines.insert(waiting.line);
        }
        let computing = self.servers.waiting.iter().filter(|it| it.computes_names && lines.contains(&it.line));
        let left = computing.map(|Waiting { maker, line, .. }| {
            let what = format!("tools that `{maker}` gives computed names are not served");
            let reason = Diagnosis::new(what, "write their names as strings");
            Warning { line: *line, rule: INNER_TOOLS.into(), reason }
        });
        let left: Vec<Warning> = left.collect();
        self.warnings.retain(|warning| warning.rule != INNER_TOOLS || !lines.contains(&warning.line));
        self.warnings.extend(left);
        self.functions.extend(added);
        self.functions.sort_by_key(|function| function.line);
    }

    /// Takes a file for one that runs the server of another: what it does not mark and does not name in `__all__` is no tool.
    pub(super) fn run_a_server(&mut self) {
        if !self.servers.marks && self.servers.names.is_none() {
            self.functions.retain(|function| !function.role.is_tool() || function.defined_in.is_some());
            self.open = OpenNames::default();
        }
    }

    /// Adds the tools that helpers have for a low-level server which lists some from elsewhere.
    fn take_listed(&mut self, helpers: &[&ToolFile]) {
        let Some(handler) = self.servers.listing.handler.clone() else { return };
        let mut taken: HashSet<_> = self.functions.iter().map(Function::identity).collect();
        for helper in helpers {
            let listed = helper.servers.listing.tools.iter().filter(|function| taken.insert(function.identity()));
            let listed: Vec<Function> = listed.map(|function| function.handled_by(&handler, &helper.path)).collect();
            if !listed.is_empty() {
                self.warnings.retain(|warning| warning.rule != LOW_LEVEL);
            }
            self.functions.extend(listed);
        }
    }

    /// Says whose tools are missing: those of the server that a helper makes.
    fn name_the_server(&mut self, helper: &Path) {
        let place = place_within(&self.path, helper).unwrap_or_else(|| helper.display().to_string());
        let what = format!("{place} makes an MCP server, and no tools of it are found");
        for warning in self.warnings.iter_mut().filter(|warning| warning.rule == NO_TOOLS) {
            warning.reason = Diagnosis::new(what.clone(), MARK);
        }
    }

    pub(super) fn warn_of_place(&mut self, helper: &Path) {
        let is_below = self.path.parent().is_some_and(|folder| helper.starts_with(folder));
        let (why, fix) = if is_below {
            ("its path has `:` or `>`", "rename the file or its folder")
        } else {
            ("it is not below this file's folder", "move it there, or serve the file that makes the server")
        };
        let what = format!("the tools of {} are not served: {why}", helper.display());
        self.warnings.push(Warning { line: 0, rule: INNER_TOOLS.into(), reason: Diagnosis::new(what, fix) });
    }

    /// Takes single functions of helpers.
    fn take_functions(&mut self, given: &[(&ToolFile, Function)], taken: &mut HashSet<(String, bool)>) {
        let mut opened: HashSet<&Path> = HashSet::new();
        for (helper, function) in given {
            let Some(place) = place_within(&self.path, &helper.path) else {
                self.warn_of_place(&helper.path);
                continue;
            };
            let joined = function.of_helper(&helper.path, &place);
            if !taken.insert(function.identity()) && self.has(&joined) {
                continue;
            }
            self.functions.push(joined);
            if opened.insert(&helper.path) {
                self.add_open_names(helper, Some(&place));
            }
        }
    }

    pub(super) fn has(&self, function: &Function) -> bool {
        self.functions.iter().any(|it| it.symbol() == function.symbol() && it.own_name() == function.own_name())
    }

    /// Takes the functions of a helper. Those of a server that is mounted with a prefix have other names.
    fn take(&mut self, helper: &ToolFile, renamed: Vec<Option<Function>>, taken: &mut HashSet<(String, bool)>) {
        let Some(place) = place_within(&self.path, &helper.path) else {
            return self.warn_of_place(&helper.path);
        };
        let mut warnings: Vec<Warning> =
            helper.warnings.iter().filter(|one| OF_SERVING.contains(&&*one.rule)).cloned().collect();
        let is_named = |function: &&Function| {
            self.servers.names.as_ref().is_none_or(|names| names.iter().any(|name| name == function.own_name()))
        };
        let offered = helper.functions.iter().zip(renamed).filter(|(function, _)| is_named(function));
        let offered: Vec<Function> = offered.map(|(own, renamed)| renamed.unwrap_or_else(|| own.clone())).collect();
        for function in offered {
            let joined = function.of_helper(&helper.path, &place);
            if taken.insert(function.identity()) || function.role.is_tool() && !self.has(&joined) {
                self.functions.push(joined);
            } else if !self.has(&joined) {
                warnings.push(function.name_is_taken());
            }
        }
        self.add_open_names(helper, Some(&place));
        self.warnings.extend(warnings.into_iter().map(|Warning { line, rule, reason }| {
            let reason = Diagnosis::new(format!("{place}, line {line}: {}", reason.what), reason.fix);
            Warning { line: 0, rule, reason }
        }));
    }
}

/// What the worker knows a file by: its path from the folder of the tool file. `None` outside it, or with a character that would end it.
pub(super) fn place_within(file: &Path, helper: &Path) -> Option<String> {
    let inside = helper.strip_prefix(file.parent()?).ok()?.to_string_lossy();
    (!inside.starts_with("..") && !inside.contains([':', '>'])).then(|| inside.into_owned())
}

impl Function {
    pub(super) fn of_helper(&self, path: &Path, place: &str) -> Self {
        let symbol = Some(format!("{BESIDE}{place}:{}", self.symbol()));
        Self { symbol, defined_in: Some(path.into()), ..self.clone() }
    }

    /// The same as a tool of a low-level server, by what the worker calls for it.
    fn handled_by(&self, handler: &str, path: &Path) -> Self {
        let symbol = Some(format!("{handler}{}", self.symbol()));
        Self { symbol, defined_in: Some(path.into()), ..self.clone() }
    }

    fn name_is_taken(&self) -> Warning {
        let what = format!("the name `{}` is already taken", self.name);
        Warning { line: self.line, rule: "name".into(), reason: Diagnosis::new(what, "give it another name") }
    }

    /// What no other function of its file has. A tool and a prompt may have one name.
    fn identity(&self) -> (String, bool) {
        (self.own_name().to_owned(), self.role.is_tool())
    }

    /// The same where something else calls what makes it: `made:server.py/main>register:3:search`, `made:>register:3:search`.
    fn made_by(&self, way: &str) -> Self {
        let symbol = self.symbol().strip_prefix(MADE).map(|maker| format!("{MADE}{way}>{maker}"));
        Self { symbol, ..self.clone() }
    }

    /// What it is known by in the file that defines it.
    pub(super) fn symbol_in_file(&self) -> Cow<'_, str> {
        let inside = self.symbol().strip_prefix(BESIDE).and_then(|rest| Some(rest.split_once(':')?.1));
        let inside = inside.unwrap_or_else(|| self.symbol());
        let maker = inside.strip_prefix(MADE).and_then(|made| Some(made.split_once('>')?.1));
        maker.map_or(Cow::Borrowed(inside), |maker| Cow::Owned(format!("{MADE}{maker}")))
    }
}
