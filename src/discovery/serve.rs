//! What an operator or a header says that a file serves: its functions, or itself as a program, and under which names.

use super::{Function, Kind, ToolFile};
use crate::config::Config;
use crate::config::origin::{Diagnosis, Setting};
use crate::config::tool::{Serve, ToolLayer};

impl ToolFile {
    /// Serves the file as it is told to. `told` comes from the operator, or else its header counts.
    pub fn serve(&mut self, told: Option<&Setting<Serve>>) {
        let declared = || self.header.as_ref()?.layer.serve.as_ref();
        let is_python = matches!(self.kind, Kind::Python | Kind::Internal);
        let serve = told.or_else(declared).map(|set| set.value);
        if !is_python || serve != Some(Serve::Main) || !self.is_ready() {
            return;
        }
        let Some(program) = self.program.take() else {
            let what = "`serve = \"main\"` is set for it, and it does nothing when it is run as a program";
            let fix = "call its program under `if __name__ == \"__main__\":`, or remove `serve`";
            return self.break_with(None, Diagnosis::new(what, fix));
        };
        self.description.clone_from(&program.summary);
        self.functions = vec![*program];
        self.left_out.clear();
        // What keeps functions from being served does not matter, and its types are not asked for.
        self.warnings
            .retain(|warning| !matches!(&*warning.rule, "no-tools" | "class" | "exports" | "star-args" | "role"));
        self.open = super::OpenNames::default();
    }
}

impl ToolFile {
    /// The table of a function in the configuration: `pack.function`, or the name of a program with one tool.
    pub(super) fn key_of(&self, function: &Function) -> String {
        if function.name == self.pack { self.pack.clone() } else { format!("{}.{}", self.pack, function.name) }
    }

    /// Gives its tools the names that the configuration sets with `as`. Its tables keep the file's own names.
    pub fn rename(&mut self, config: &Config) {
        let named = |layer: Option<&ToolLayer>| Some(layer?.served_as.as_ref()?.value.clone());
        let pack = named(config.packs.get(&self.pack));
        let is_python = matches!(self.kind, Kind::Python | Kind::Internal);
        let is_alone = !is_python && self.functions.len() == 1;
        for function in &mut self.functions {
            let key = format!("{}.{}", self.pack, function.name);
            function.served_as = named(config.functions.get(&key)).or_else(|| pack.clone().filter(|_| is_alone));
        }
        self.served_as = pack.filter(|_| is_python);
    }
}
