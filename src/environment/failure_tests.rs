use std::path::Path;

use super::*;
use crate::environment::in_force::quiet;
use crate::pep723::Metadata;

fn fault(stderr: &str) -> Fault {
    let spec = EnvironmentSpec::house("a", Path::new("/t/a.py"));
    build_fault(&spec, &quiet(&[]), &[], true, stderr)
}

#[test]
fn words_that_are_not_known_come_through_on_one_line() {
    let stderr = "Using CPython 3.11.7\nCreating virtual environment at: x\n  × Something new:\n  ╰─▶ Because of this\n      and that.\n";
    let fault = fault(stderr);
    assert_eq!(
        fault.message,
        "the environment of a could not be built: Something new: Because of this and that. Correct the header of \
         /t/a.py; the next call tries again"
    );
}

#[test]
fn what_is_no_fault_of_the_header_is_told_with_its_own_cure() {
    for (stderr, cure) in [
        ("error: Failed to initialize cache at `/x`\n  cause: Operation not permitted (os error 1)\n", "UV_CACHE_DIR"),
        ("error: failed to write\n  cause: Read-only file system (os error 30)\n", "UV_CACHE_DIR"),
        ("error: failed to write\n  cause: No space left on device (os error 28)\n", "hostler warm --prune"),
        ("error: Failed to fetch\n  cause: invalid peer certificate: UnknownIssuer\n", "SSL_CERT_FILE"),
        ("error: Failed to fetch\n  cause: error sending request for url\n", "HTTPS_PROXY"),
    ] {
        let told = fault(stderr).message;
        let (ours, uvs) = told.split_once(". uv said: ").unwrap();
        assert!(ours.contains(cure) && !ours.contains("header") && !uvs.is_empty(), "{told}");
    }
}

#[test]
fn an_extra_that_a_package_does_not_have_is_told_with_its_line() {
    let stderr =
        "Installed 5 packages in 2ms\nwarning: The package `requests==2.34.2` does not have an extra named `sockz`\n";
    let file = std::sync::Arc::new(Path::new("/t/a.py").to_owned());
    let header = Metadata::from_toml("dependencies = [\n  \"requests[sockz]\",\n]\n", 2, &file).unwrap();
    let spec = EnvironmentSpec::from_header("a", &file, &header);
    let told = "/t/a.py:3: requests has no extra \"sockz\", and nothing was installed for it; correct its name";
    assert_eq!(unknown_extras(&spec, stderr), [told]);
    assert_eq!(unknown_extras(&spec, "warning: something else\n"), Vec::<String>::new());
}

#[test]
fn long_words_are_cut_at_a_word() {
    let text = "gray ".repeat(200);
    let short = cut(text.trim());
    assert!(short.len() < 450 && short.contains("gray … ("), "{short}");
    assert_eq!(cut("short"), "short");
}

#[test]
fn a_cause_on_a_line_of_its_own_follows_a_colon() {
    let stderr = "error: No solution found when resolving dependencies\n  cause: Because x was not found.\n";
    assert_eq!(reason(stderr), "No solution found when resolving dependencies: Because x was not found");
}

#[test]
fn a_stale_lock_is_told_with_the_command_that_mends_it() {
    let stderr = "error: The lockfile at `script.py.lock` needs to be updated, but `--locked` was provided. To update the lockfile, run `uv lock`.\n";
    let fault = fault(stderr);
    assert!(fault.message.contains("Run `uv lock --script /t/a.py`;"), "{}", fault.message);
}

#[test]
fn a_lock_that_does_not_fit_the_index_is_told_with_the_command_that_mends_it() {
    let file = Path::new("/my tools/a.py");
    let told = |is_locked, stderr: &str| {
        let spec = EnvironmentSpec::house("a", file);
        build_fault(&spec, &quiet(&[]), &[], is_locked, stderr).message
    };
    let changed = "Resolved 1 package in 1ms\nerror: Failed to download `six==1.17.0`\n  cause: Hash mismatch for `six==1.17.0`\n\n  \
                   Expected:\n  sha256:0000\n\n  Computed:\n  sha256:4721\n";
    let anew = "Delete it and run `uv lock --script '/my tools/a.py'`; the next call tries again";
    let lock =
        "the environment of a could not be built: /my tools/a.py.lock does not fit what the index has: the file of";
    assert_eq!(
        told(true, changed),
        format!("{lock} six==1.17.0 there has another hash (the lock was changed, or that file was). {anew}")
    );
    let gone = "error: Failed to download `six==1.17.0`\n  cause: Failed to fetch: `https://f.org/s.whl`\n  cause: HTTP status client \
                error (404 Not Found) for url (https://f.org/s.whl)\n";
    assert_eq!(told(true, gone), format!("{lock} six 1.17.0 is not there (https://f.org/s.whl). {anew}"));
    assert_eq!(told(true, &gone.replace("404 Not Found", "410 Gone")), told(true, gone));
    assert!(!told(false, gone).contains("uv lock"), "{}", told(false, gone));
    assert!(!told(true, &gone.replace("404", "500")).contains("uv lock"));
    let stale = "error: The lockfile at `script.py.lock` needs to be updated, but `--locked` was provided.\n";
    assert!(told(true, stale).contains("Run `uv lock --script '/my tools/a.py'`"), "{}", told(true, stale));
}

#[test]
fn no_part_of_a_fault_tells_a_password() {
    for stderr in [
        "error: Something new\n  cause: for url (https://me:pw@e.org/simple) and https://you:pw@f.org\n",
        "error: HTTP status client error (403 Forbidden) for url (http://me:pw@e.org/simple/x/)\n",
    ] {
        let fault = fault(stderr);
        let told = format!("{} {}", fault.message, fault.details.stderr.unwrap());
        assert!(told.contains("://****@e.org/simple") && !told.contains("pw"), "{told}");
    }
}
