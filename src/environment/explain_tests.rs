use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::config::origin::{Origin, Place, Setting};
use crate::environment::settings::{INDEXES, PROXIES};

const HEADER: &str = "requires-python = \">=3.10\"\ndependencies = [\n  \"rich==99\",\n  \"httpx==0.27.0\",\n  \"httpcore==0.9\",\n  \
                      \"x @ https://e.org/x.whl\",\n  \"pywin32\",\n  \"six>2,<1\",\n  \"httpx==0.28\",\n]\n[tool.uv]\nindexx = 3\n";
const FETCHING: &str = "error: Request failed after 3 retries in 9.1s\n  cause: Failed to download \
                        `https://github.com/astral-sh/python-build-standalone/x.tar.gz`\n  cause: error sending request for url\n";
const NO_INTERPRETER: &str = "error: No interpreter found for Python 3.77 in virtual environments or search path\n";
const NO_TAGS: &str = "error: No solution found\n  cause: Because rich==99 has no wheels with a matching Python ABI tag (e.g., `cp315`) and you \
                       require rich==99, we can conclude …\n\nhint: You require CPython 3.15 (`cp315`), but we only found wheels for \
                       `rich` (v99) with the following Python ABI tags: `cp38`, `cp39`, `cp313`, `cp313t`";
const WITHOUT_WHEELS: &[(&str, &[(&str, &str)])] = &[
    (NO_TAGS, &[]),
    (NO_TAGS, &[("UV_PYTHON", "3.15")]),
    (ONE_TAG, &[]),
    ("error: Failed to build `rich==99`\n  cause: Call to `x` failed\n", &[("UV_PYTHON", "3.15")]),
];
const ONE_TAG: &str = "error: No solution found\n  cause: Because rich==99 has no wheels …\n\nhint: You require CPython 3.15 (`cp315`), but \
                       we only found wheels for `rich` (v99) with the following Python ABI tag: `cp312`";
const UNREACHED: &str = "error: Failed to fetch: `https://i.org/simple/six/`\n  cause: error sending request for url \
                         (https://i.org/simple/six/)\n";

/// Settings that read nothing from this process's own environment.
fn settings_of(variables: &[(&str, &str)]) -> EnvironmentSettings {
    let place = Place { file: Arc::new("/p/hostler.toml".into()), line: 3 };
    let set = |value: &str| Setting { value: value.to_owned(), origin: Origin::File(place.clone()) };
    let others = ["UV_PYTHON", "UV_OFFLINE", "UV_PYTHON_DOWNLOADS", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    let unset = INDEXES.iter().chain(PROXIES).chain(&others).map(|name| ((*name).to_owned(), set("")));
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), set(value)));
    EnvironmentSettings { env: unset.chain(variables).collect(), ..EnvironmentSettings::default() }
}

fn spec(header: &str) -> EnvironmentSpec {
    let file = Arc::new(PathBuf::from("/t/a.py"));
    let header = Metadata::from_toml(header, 2, &file).unwrap();
    EnvironmentSpec::from_header("a", &file, &header)
}

fn fault_of(header: &str, settings: &EnvironmentSettings, stderr: &str) -> Fault {
    build_fault(&spec(header), settings, &[(3, 9), (3, 11)], Some((3, 14)), true, stderr)
}

/// The explanation alone, without the prefix and uv's reason.
fn explained(stderr: &str, variables: &[(&str, &str)]) -> String {
    let message = fault_of(HEADER, &settings_of(variables), stderr).message;
    let text = message.strip_prefix("cannot build the environment of a: ").unwrap();
    text.split(" (the next call tries again). uv: ").next().unwrap().replace(&platform(), "PLATFORM")
}

fn platform() -> String {
    format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)
}

/// The gallery: every row of the table, as people read it.
#[test]
fn explanations_read_as_in_the_gallery() {
    let index = [("UV_DEFAULT_INDEX", "https://me:pw@i.org/simple")];
    let proxy = [("HTTPS_PROXY", "http://me:pw@p:3128")];
    let not_found = "error: Because rich was not found in the package registry and you require rich, we can conclude …";
    let no_version = "error: Because there is no version of rich==99 and you require rich==99, we can conclude …";
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("error: failed to write\n  cause: No space left on device (os error 28)\n", &[]),
        ("error: Failed to initialize cache at `/x`\n  cause: Operation not permitted (os error 1)\n", &[]),
        ("error: Failed to fetch\n  cause: invalid peer certificate: UnknownIssuer\n", &[]),
        ("error: Failed to fetch\n  cause: invalid peer certificate: UnknownIssuer\n", &[("SSL_CERT_FILE", "/ca.pem")]),
        (FETCHING, &[]),
        (NO_INTERPRETER, &[("UV_PYTHON_DOWNLOADS", "never")]),
        (NO_INTERPRETER, &[("UV_OFFLINE", "1")]),
        (
            "error: Failed to inspect Python interpreter from search path at `/shims/python3.10`\n  cause: not found",
            &[],
        ),
        (
            "error: Because tabulate was not found in the cache\nhint: Packages were unavailable because the\n  network was disabled.",
            &[("UV_OFFLINE", "1")],
        ),
        ("error: Network connectivity is disabled, but `x` is not cached", &[]),
        ("error: HTTP status client error (407 Proxy Authentication Required) for url (https://i.org/x/)", &proxy),
        ("error: tunnel error: proxy authorization required", &[]),
        (
            "error: Failed to download `x @ https://e.org/x.whl`\n  cause: HTTP status client error (401 Unauthorized) for url (https://e.org/x.whl)",
            &[],
        ),
        ("error: Distribution not found at: file:///nowhere/indexx", &[]),
        (
            "error: An index URL (https://i.org/simple) could not be queried due to a lack of valid authentication credentials (401 Unauthorized)",
            &index,
        ),
        (
            "error: An index (https://i.org/simple) returned a 403 Forbidden error. Check that the index URL is correct",
            &[],
        ),
        ("error: HTTP status server error (500 Internal Server Error) for url (http://me:pw@i.org/simple/x/)", &[]),
        ("error: HTTP status client error (429 Too Many Requests) for url (http://i.org/simple/x/)", &[]),
        ("error: Missing `Content-Type` header for `x`", &index),
        ("error: Unsupported `Content-Type` \"a/b\" for x", &[]),
        (UNREACHED, &[]),
        (UNREACHED, &[proxy[0], index[0]]),
        (
            "error: The lockfile at `script.py.lock` needs to be updated, but `--locked` was provided. To update, run `uv lock`.",
            &[],
        ),
        ("error: Failed to download `six==1.17.0`\n  cause: Hash mismatch for `six==1.17.0`\n", &[]),
        (
            "error: Failed to download `six==1.17.0`\n  cause: HTTP status client error (404 Not Found) for url (https://f.org/s.whl)",
            &[],
        ),
        (
            "error: Failed to parse `uv.lock`\n  cause: TOML parse error at line 7, column 9\n   |\n 7 | <<<<<<< HEAD\n",
            &[],
        ),
        ("error: failed to read from file `/s/script.py.lock`: stream did not contain valid UTF-8", &[]),
        ("error: The lockfile at `uv.lock` uses an unsupported schema version (v99, but only v1 is supported).", &[]),
        (
            "error: No solution found\n\nhint: Wheels are available for `pywin32` (v312) on the following platforms: `win32`",
            &[],
        ),
        (not_found, &[]),
        (not_found, &index),
        ("error: Because cv2 was not found in the package registry and y depends on cv2, we can conclude …", &[]),
        (
            "error: Because the requested Python version (>=3.9) does not satisfy Python>=3.11 and rich==99 depends on Python>=3.11, we can conclude …",
            &[],
        ),
        (no_version, &[]),
        (no_version, &index),
        (
            "error: Because only the following versions of rich are available:\n  rich<=14.0\n  rich==14.1\n  and you require rich>=99, we can conclude …",
            &[],
        ),
        (
            "error: Because httpx==0.27.0 depends on httpcore==1.* and you require httpx==0.27.0, we can conclude that you require \
          httpcore==1.*. And because you require httpcore==0.9, we can conclude …",
            &[],
        ),
        ("  × No solution found when resolving dependencies:\n  ╰─▶ you require six ∅\n", &[]),
        (
            "error: Failed to build `rich==99`\n  cause: Call to `x` failed\n[stderr]\n  a.h:1:2: fatal error: lber.h: No such file\n  error: Command failed",
            &[],
        ),
        (
            "error: Failed to build `rich==99`\n  cause: Call to `x` failed\n[stderr]\nTraceback\nRuntimeError: no compiler\n",
            &[],
        ),
        (
            "error: TOML parse error at line 4, column 1\n  |\n4 | [tool.uv]\n  | ^^^^^^^^^\nunknown field `indexx`\n",
            &[],
        ),
        (
            "error: TOML parse error at line 4, column 1\n  |\n4 | \"six>2,<1\"\n  | ^^^^^^^^^\nExpected a version\n",
            &[],
        ),
        ("error: Something new", &[]),
    ];
    let gallery = cases.iter().chain(WITHOUT_WHEELS).map(|(stderr, variables)| explained(stderr, variables));
    insta::assert_snapshot!(gallery.collect::<Vec<_>>().join("\n"));
}

#[test]
fn uvs_own_reason_follows_on_one_line() {
    let stderr = "Using CPython 3.11.7\nCreating virtual environment at: x\n  × Something new:\n  ╰─▶ Because of this\n      and that.\n";
    let fault = fault_of(HEADER, &settings_of(&[]), stderr);
    assert!(fault.message.ends_with("uv: Something new: Because of this and that"), "{}", fault.message);
    assert_eq!(fault.details.stderr.as_deref(), Some(stderr.trim()));
    let cause = "error: No solution found when resolving dependencies\n  cause: Because x was not found.\n";
    assert_eq!(reason(cause), "No solution found when resolving dependencies: Because x was not found");
}

#[test]
fn only_a_full_disk_is_an_exhausted_resource() {
    let code = |stderr| fault_of(HEADER, &settings_of(&[]), stderr).code;
    assert_eq!(code("error: x\n  cause: Disk quota exceeded (os error 122)\n"), Code::ResourceExhausted);
    assert_eq!(code(UNREACHED), Code::EnvironmentFailed);
}

#[test]
fn without_a_lock_no_lock_is_blamed() {
    let gone = "error: Failed to download `six==1`\n  cause: HTTP status client error (404 Not Found) for url (https://f.org/s.whl)";
    let message = build_fault(&spec(HEADER), &settings_of(&[]), &[], None, false, gone).message;
    assert!(!message.contains("lock"), "{message}");
}

#[test]
fn a_python_that_is_not_there_is_named_with_its_line_and_what_works_here() {
    for (range, words) in [
        ("==3.10.*", "(/t/a.py:2) works here (found: 3.9, 3.11)"),
        ("==3.7.*", "write \">=3.9\""),
        (">=3.11,<3.11.0", "requires-python = \">=3.11,<3.11.0\" (/t/a.py:2)"),
        (">=4.0", "requires-python = \">=4.0\" (/t/a.py:2)"),
    ] {
        let message = fault_of(&format!("requires-python = \"{range}\"\n"), &settings_of(&[]), NO_INTERPRETER).message;
        assert!(message.contains(words), "{message}");
    }
    let python = settings_of(&[("x", "3.30")]).env["x"].clone();
    let settings = EnvironmentSettings { python: Some(python), ..settings_of(&[]) };
    let message = fault_of(HEADER, &settings, NO_INTERPRETER).message;
    assert!(message.contains("3.30") && message.contains("/p/hostler.toml:3") && message.contains("3.11"), "{message}");
}

#[test]
fn the_way_to_a_python_depends_on_what_is_set() {
    let text = explained(NO_INTERPRETER, &[("UV_OFFLINE", "0"), ("UV_PYTHON_DOWNLOADS", "automatic")]);
    assert!(text.ends_with("or let uv download one"), "{text}");
    let text = explained(FETCHING, &[("HTTPS_PROXY", "http://p:3128")]);
    assert!(text.contains("or correct HTTPS_PROXY = http://p:3128 (/p/hostler.toml:3) or set UV_PY"), "{text}");
}

#[test]
fn an_extra_that_a_package_does_not_have_is_reported_with_its_line() {
    let stderr = "Installed 5 packages\nwarning: The package `requests==2.34.2` does not have an extra named `sockz`\n";
    let spec = spec("dependencies = [\n  \"requests[sockz]\",\n]\n");
    let warnings = unknown_extras(&spec, stderr);
    assert!(
        warnings.len() == 1 && warnings[0].starts_with("/t/a.py:3: requests has no extra \"sockz\""),
        "{warnings:?}"
    );
    assert_eq!(unknown_extras(&spec, "warning: something else\n"), Vec::<String>::new());
}

#[test]
fn a_long_reason_is_cut_around_what_was_recognised() {
    let text = format!("{}hint: Wheels are {}", "gray ".repeat(100), "blue ".repeat(100));
    let from_start = excerpt(&text, 0);
    assert!(
        from_start.len() < 450 && from_start.starts_with("gray") && from_start.contains("gray … ("),
        "{from_start}"
    );
    let from_hint = excerpt(&text, text.find("hint").unwrap());
    assert!(from_hint.len() < 450 && from_hint.starts_with("… hint: Wheels"), "{from_hint}");
    assert_eq!(excerpt("short", 0), "short");
}

#[test]
fn no_part_of_a_fault_holds_a_password() {
    for stderr in [
        "error: Something new\n  cause: for url (https://me:pw@e.org/simple) and https://you:pw@f.org\n",
        "error: HTTP status client error (403 Forbidden) for url (http://me:pw@e.org/simple/x/)\n",
    ] {
        let fault = fault_of(HEADER, &settings_of(&[]), stderr);
        let text = format!("{} {}", fault.message, fault.details.stderr.unwrap());
        assert!(text.contains("://****@e.org/simple") && !text.contains("pw@"), "{text}");
    }
    for proxy in ["me:pw@p:3128", "http://me:pw@p:3128", "http://me:p@w@p:3128"] {
        let text = explained(UNREACHED, &[("HTTPS_PROXY", proxy)]);
        assert!(text.contains("****@p:3128") && !text.contains("pw") && !text.contains("p@w"), "{text}");
    }
    assert_eq!(without_password("x @ https://me:pw@e.org/x@1.whl"), "x @ https://****@e.org/x@1.whl");
    assert_eq!(without_password("x @ https://e.org/x@1.whl"), "x @ https://e.org/x@1.whl");
}

#[test]
fn a_default_index_of_the_header_counts_where_no_variable_names_another() {
    let file = Arc::new(PathBuf::from("a.py"));
    let header = "[[tool.uv.index]]\nurl = \"https://own/simple\"\ndefault = true\n";
    let header = Metadata::from_toml(header, 2, &file).unwrap();
    let index = |variables: &[(&str, &str)]| settings_of(variables).index(Some(&header)).unwrap().value;
    assert_eq!(index(&[]), "https://own/simple");
    assert_eq!(index(&[("UV_DEFAULT_INDEX", "https://i.org/simple")]), "https://i.org/simple");
    assert_eq!(settings_of(&[("UV_DEFAULT_INDEX", "https://pypi.org/simple/")]).index(None), None);
}

#[test]
fn the_table_is_read_whole() {
    assert!(RULES.len() > 15 && RULES.iter().filter(|rule| rule.code.is_some()).count() == 1);
}
