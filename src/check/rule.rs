//! The rules, each with its name, its weight and a sentence that says why it is one.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something will not work.
    Error,
    /// Something works less well than its author would want.
    Warning,
}

/// One rule of `check`.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name under which it can be switched off.
    pub name: &'static str,
    /// How bad it is to break it.
    pub level: Level,
    /// Why there is such a rule.
    pub why: &'static str,
}

macro_rules! rules {
    ($($constant:ident $name:literal $level:ident $why:literal)+) => {
        $(pub(super) static $constant: Rule = Rule { name: $name, level: Level::$level, why: $why };)+
        /// Every rule, in the order of the documentation.
        pub static RULES: &[&Rule] = &[$(&$constant),+];
    };
}

rules! {
    UNREADABLE "unreadable" Error "a file or folder that cannot be read serves no tools"
    HEADER "header" Error "a header that cannot be read keeps the whole file from being served"
    SYNTAX "syntax" Error "a file that is no Python keeps all its tools from being served"
    NAME "name" Error "a pack or tool whose name is taken, too long or no identifier is not served"
    TAKES_PLACE "takes-place" Warning "a file that takes the place of a built-in tool, or of a file of another kind, may not be meant to"
    METADATA "metadata" Warning "what an executable says of itself only holds where it is understood"
    NO_PROGRAM "no-program" Error "an executable that cannot be started serves no tool"
    NOT_EXECUTABLE "not-executable" Warning "a script in a tools folder that nobody may execute is no tool"
    NO_TOOLS "no-tools" Warning "a file in a tools folder that offers nothing is likely missing something"
    EXPORTS "exports" Warning "`__all__` and `pack` only count where they are written out"
    STAR_ARGS "star-args" Warning "clients give arguments by name, so `*args` stays empty"
    UNDECLARED_IMPORT "undeclared-import" Error "what is not in `dependencies` is not there when the file runs"
    PYTHON_IMPOSSIBLE "python-impossible" Error "no version of Python fits `requires-python`"
    PYTHON_ABSENT "python-absent" Warning "no interpreter on this machine fits `requires-python`, so uv has to fetch one"
    NEWER_SYNTAX "newer-syntax" Warning "a version of Python that `requires-python` allows may not know what the file is written in"
    UNDECLARED_SECRET "undeclared-secret" Error "a tool only receives the secrets it declares"
    WRITTEN_SECRET "written-secret" Error "what stands in a file is read by everybody who reads the file"
    ENVIRONMENT_READ "environment-read" Warning "a worker does not inherit the environment, so the variable is not there"
    READS_INPUT "reads-input" Warning "a worker has no keyboard: its standard input is empty"
    SHARED_DEFAULT "shared-default" Warning "a worker lives for many calls, and a changed default is changed for all of them"
    DEFAULT_NOT_JSON "default-not-json" Warning "a model is told a default only where it can be written as JSON"
    RESULT_NOT_JSON "result-not-json" Error "a result that is no JSON is refused when the tool returns it"
    MISSING_DOCSTRING "missing-docstring" Warning "a model chooses a tool by its docstring"
    MISSING_HINT "missing-hint" Warning "without a hint a model may send anything, and nothing is checked"
    MISSING_ARGUMENT_TEXT "missing-argument-text" Warning "the docstring explains the other arguments"
    UNKNOWN_ARGUMENT_TEXT "unknown-argument-text" Warning "a model that reads of an argument will try to give it"
    SETTINGS "settings" Error "a configuration with mistakes is not used at all"
    ABSENT_ROOT "absent-root" Error "built-in tools cannot reach into a folder that is not there"
    ABSENT_PROGRAM "absent-program" Error "nothing is built where the uv or the Python that `hostler.toml` names is not there"
    SECRET_FILE "secret-file" Warning "a tool does not get a secret whose file is absent, empty or open to others"
    UNUSED_SETTINGS "unused-settings" Warning "settings for a tool that is not there do nothing, nor does what another setting overrules"
    UNKNOWN_RULE "unknown-rule" Warning "an `ignore` that names no rule ignores nothing"
}

impl Rule {
    /// The rule of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        RULES.iter().copied().find(|rule| rule.name == name)
    }
}
