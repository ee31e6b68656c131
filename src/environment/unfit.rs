//! A uv that is none, does not run or is too old. What it writes then is no word about the header.

use std::path::Path;

use super::probe::{OLDEST_UV, UvVersion};
use super::settings::{EnvironmentSettings, place_of};
use crate::outcome::{Code, Details, Fault};
use crate::process::Exit;

/// Whether these are not the words of a uv that tried to build: no error of its own, or a command line that it does not know.
pub(super) fn says_nothing_of_use(stderr: &str) -> bool {
    let told = |line: &str| line.starts_with("error") || line.trim_start().starts_with(['×', 'x']);
    let unknown = ["unexpected argument", "unrecognized subcommand", "unrecognized option", "invalid value"];
    !stderr.lines().any(told)
        || stderr.lines().any(|line| unknown.iter().any(|words| line.starts_with(&format!("error: {words}"))))
}

/// The fault of a uv that cannot build anything, whichever header it is given.
pub(super) fn unfit_uv(
    uv: &Path,
    version: Option<UvVersion>,
    settings: &EnvironmentSettings,
    exit: Exit,
    stderr: &str,
) -> Fault {
    let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    let words = last.map(|line| format!(": {line}")).unwrap_or_default();
    let place = uv.display();
    let details =
        Details { stderr: Some(stderr.trim().to_owned()).filter(|text| !text.is_empty()), ..Details::default() };
    if let (Some(_), Some(signal)) = (version, exit.signal_name()) {
        let text = format!(
            "the uv at {place} was ended by {signal} while it built: somebody killed it, or memory was short; the next call \
             tries again"
        );
        return Fault::new(Code::EnvironmentFailed, text).with(details);
    }
    let (what, cure) = match version {
        None => {
            let silent = exit == Exit::Code(0) && words.is_empty();
            let how = if silent { "it ended well and did nothing".to_owned() } else { format!("{exit}{words}") };
            (format!("the uv at {place} does not work ({how})"), "Install uv anew (https://docs.astral.sh/uv)")
        }
        Some((major, minor, patch)) if (major, minor, patch) < OLDEST_UV => {
            let text = format!("the uv at {place} is {major}.{minor}.{patch}, which is too old: 0.8 is needed");
            (text, "Update it (`uv self update`, or however it was installed)")
        }
        Some((major, minor, patch)) => {
            let text = format!("the uv at {place} ({major}.{minor}.{patch}) failed without a reason ({exit}{words})");
            (text, "Update it (`uv self update`, or however it was installed)")
        }
    };
    let other = match &settings.uv {
        Some(said) => format!("correct `environment.uv` at {}", place_of(&said.origin)),
        None => "take it off PATH: hostler then looks for another, or fetches one".to_owned(),
    };
    Fault::new(Code::EnvironmentFailed, format!("{what}. {cure}, or {other}")).with(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_word_about_the_header_is_recognised() {
        for stderr in [
            "",
            "sh: 1: exec: nothing: not found\n",
            "error: unexpected argument '--script' found\n\nUsage: uv sync\n",
            "error: unrecognized subcommand 'sync'\n",
            "error: unrecognized option '--script'\n",
            "error: invalid value 'x' for '--color'\n",
        ] {
            assert!(says_nothing_of_use(stderr), "{stderr}");
        }
        for stderr in ["error: Failed to build `x`\n", "Resolved 1 package\n  × No solution found\n"] {
            assert!(!says_nothing_of_use(stderr), "{stderr}");
        }
    }

    #[test]
    fn an_unfit_uv_is_told_with_the_ways_to_another() {
        let told = |version, stderr| {
            unfit_uv(Path::new("/b/uv"), version, &EnvironmentSettings::default(), Exit::Code(127), stderr).message
        };
        assert_eq!(
            told(None, "\nsh: nothing: not found\n"),
            "the uv at /b/uv does not work (exit status 127: sh: nothing: not found). Install uv anew \
             (https://docs.astral.sh/uv), or take it off PATH: hostler then looks for another, or fetches one"
        );
        let silent = unfit_uv(Path::new("/b/uv"), None, &EnvironmentSettings::default(), Exit::Code(0), "");
        assert!(silent.message.starts_with("the uv at /b/uv does not work (it ended well and did nothing). Install"));
        let talking = unfit_uv(Path::new("/b/uv"), None, &EnvironmentSettings::default(), Exit::Code(0), "Python 3.11");
        assert!(talking.message.contains("does not work (exit status 0: Python 3.11)"), "{talking:?}");
        let killed =
            unfit_uv(Path::new("/b/uv"), Some((0, 9, 0)), &EnvironmentSettings::default(), Exit::Signal(9), "");
        assert!(killed.message.starts_with("the uv at /b/uv was ended by SIGKILL while it built"), "{killed:?}");
        assert!(
            told(Some((0, 4, 0)), "error: …")
                .starts_with("the uv at /b/uv is 0.4.0, which is too old: 0.8 is needed. Update")
        );
        assert!(
            told(Some((0, 9, 0)), "")
                .starts_with("the uv at /b/uv (0.9.0) failed without a reason (exit status 127). Update")
        );
    }
}
