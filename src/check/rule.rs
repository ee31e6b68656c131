//! The rules of `check`, each with its name, its level and its reason.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something will not work.
    Error,
    /// Something may not work, or not as intended.
    Warning,
}

/// One rule of `check`.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name that `ignore` switches it off by.
    pub name: &'static str,
    /// The level of its findings.
    pub level: Level,
    /// Why the rule exists.
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
    OPEN_FOLDER "open-folder" Warning "anyone who can write to a tools folder decides what hostler runs"
    HEADER "header" Error "a file with an invalid header serves no tools"
    SYNTAX "syntax" Error "a file that is not valid Python serves no tools"
    NAME "name" Error "a pack or tool needs a name that is an identifier, not too long and not taken"
    TAKES_PLACE "takes-place" Warning "a file may hide a built-in tool, or a file of another kind, by accident"
    METADATA "metadata" Warning "metadata of an executable that hostler does not understand has no effect"
    NO_PROGRAM "no-program" Error "an executable that cannot be started serves no tool"
    NOT_EXECUTABLE "not-executable" Warning "a script without execute permission is not a tool"
    NOT_ASKED "not-asked" Warning "a program that contains neither `schema` nor `hostler-worker`, and has no manifest, is not run with `--schema`, and not served"
    NO_TOOLS "no-tools" Warning "a file in a tools folder that offers no tool is probably incomplete"
    EXPORTS "exports" Warning "`__all__` and `pack` only take effect as literals"
    STAR_ARGS "star-args" Warning "clients pass arguments by name, so `*args` stays empty"
    ROLE "role" Error "a resource or prompt whose decorator cannot be understood without running the file is not served"
    CLASS "class" Error "a worker makes one instance of a class that offers tools, without arguments"
    INNER_TOOLS "inner-tools" Error "tools that a function makes when it is called are not known without running it"
    RUNS_AT_IMPORT "runs-at-import" Warning "a file is imported by every worker, and its calls wait until that has ended"
    PROGRAM "program" Warning "the functions of a command-line program are seldom tools"
    LOW_LEVEL_SERVER "low-level-server" Error "tools that a server's handler computes are not known without running it"
    ICON "icon" Warning "an icon that cannot be sent is left out of lists"
    UNDECLARED_IMPORT "undeclared-import" Error "a worker's environment has only what `dependencies` declares"
    REQUIREMENTS "requirements" Warning "what lies beside a file is used where it lists plain requirements"
    PYTHON_IMPOSSIBLE "python-impossible" Error "no Python that workers can run on satisfies `requires-python`"
    PYTHON_ABSENT "python-absent" Warning "no interpreter on this machine satisfies the requirement, so uv has to download one"
    NEWER_SYNTAX "newer-syntax" Warning "`requires-python` allows versions that cannot parse the file"
    UNDECLARED_SECRET "undeclared-secret" Error "a tool receives only the secrets it declares"
    WRITTEN_SECRET "written-secret" Error "a secret in a file is visible to everyone who reads the file"
    ENVIRONMENT_READ "environment-read" Warning "a worker does not inherit hostler's environment variables"
    READS_INPUT "reads-input" Warning "a worker's standard input is empty"
    UNKNOWN_NAME "unknown-name" Error "what a tool reads of `hostler` is there, or the call fails"
    SHARED_DEFAULT "shared-default" Warning "a worker serves many calls, which share a mutable default"
    SETTINGS "settings" Error "a configuration file with mistakes is not used at all"
    ABSENT_ROOT "absent-root" Error "built-in tools cannot reach a folder that does not exist"
    ABSENT_PROGRAM "absent-program" Error "environments cannot be built without the configured uv and Python"
    SECRET_FILE "secret-file" Warning "a secret's file must exist, have content and be closed to other users"
    UNUSED_SETTINGS "unused-settings" Warning "settings for a tool that does not exist have no effect"
    UNKNOWN_RULE "unknown-rule" Warning "`ignore` with an unknown rule has no effect"
}

impl Rule {
    /// The rule of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        RULES.iter().copied().find(|rule| rule.name == name)
    }
}
