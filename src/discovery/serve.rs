//! What an operator or a header says that a file serves: its functions, or itself as a program, and under which names.

use super::{Function, Kind, ToolFile};
use crate::config::Config;
use crate::config::origin::Diagnosis;
use crate::config::tool::{Serve, ToolLayer};

/// Rules about functions.
const OF_FUNCTIONS: [&str; 5] = ["no-tools", "class", "exports", "star-args", "role"];

impl ToolFile {
    /// Applies what the configuration says about a Python file: what it needs, and what it serves.
    pub fn configure(&mut self, config: &Config) {
        let pack = config.packs.get(&self.pack);
        self.take_needs(config);
        let header = self.header.as_ref().map(|header| &header.layer);
        let serve = pack.and_then(|pack| pack.serve.as_ref()).or_else(|| header?.serve.as_ref());
        let protocol = pack.and_then(|pack| pack.protocol.as_ref()).or_else(|| header?.protocol.as_ref());
        let is_python = matches!(self.kind, Kind::Python | Kind::Internal);
        if !is_python || serve.map(|serve| serve.value) != Some(Serve::Main) || !self.is_ready() {
            return;
        }
        if protocol.is_some() {
            let what = "it has both `serve = \"main\"` and a `protocol`, which a program that serves itself speaks";
            return self.break_with(None, Diagnosis::new(what, "remove one of the two"));
        }
        self.serve_program();
    }

    fn serve_program(&mut self) {
        let Some(program) = self.program.clone() else {
            let what = "`serve = \"main\"` is set for it, and it does nothing when it is run as a program";
            let fix = "call its program under `if __name__ == \"__main__\":`, or remove `serve`";
            return self.break_with(None, Diagnosis::new(what, fix));
        };
        self.description.clone_from(&program.summary);
        self.functions = vec![*program];
        self.left_out.clear();
        // What keeps functions from being served does not matter, and its types are not asked for.
        self.warnings.retain(|warning| !OF_FUNCTIONS.contains(&&*warning.rule));
        self.open = super::OpenNames::default();
    }
}

impl ToolFile {
    /// The table in the configuration by which a function gets another name: `pack.function`, or that of a program with one tool.
    pub(super) fn key_of(&self, function: &Function) -> String {
        if self.is_alone() { self.pack.clone() } else { format!("{}.{}", self.pack, function.name) }
    }

    /// Whether it is one tool without a pack: an executable or a built-in tool.
    fn is_alone(&self) -> bool {
        matches!(self.kind, Kind::Executable | Kind::Builtin) && self.functions.len() == 1
    }

    /// Gives its tools the names that the configuration sets with `as`. Its tables keep the file's own names.
    pub fn rename(&mut self, config: &Config) {
        let named = |layer: Option<&ToolLayer>| Some(layer?.served_as.as_ref()?.value.clone());
        let pack = named(config.packs.get(&self.pack));
        let is_python = matches!(self.kind, Kind::Python | Kind::Internal);
        let is_alone = self.is_alone();
        for function in &mut self.functions {
            let key = format!("{}.{}", self.pack, function.name);
            function.served_as = named(config.functions.get(&key)).or_else(|| pack.clone().filter(|_| is_alone));
        }
        self.served_as = pack.filter(|_| is_python);
    }
}
