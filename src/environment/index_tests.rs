use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::environment::in_force::quiet;

const NOT_FOUND: &str = "error: No solution found when resolving dependencies\n  cause: Because tabulate was not found in the \
                         package registry and you require tabulate, we can conclude …\n";

fn told(hint: &str, variables: &[(&str, &str)]) -> String {
    let header = "[[tool.uv.index]]\nname = \"our-own\"\nurl = \"https://own/simple\"\n";
    let header = Metadata::from_toml(header, 2, &Arc::new(PathBuf::from("a.py"))).unwrap();
    let stderr = format!("{NOT_FOUND}\n{hint}\n");
    advice(&stderr, &quiet(variables), Some(&header)).unwrap_or_else(|| "nothing".to_owned())
}

#[test]
fn what_keeps_uv_from_its_packages_is_no_fault_of_the_header() {
    let offline = "hint: Packages were unavailable because the network was disabled.";
    let asked = |url: &str| {
        format!(
            "hint: An index URL ({url}) could not be queried due to a lack of valid authentication credentials (401 Unauthorized)"
        )
    };
    let refused =
        "hint: An index (https://i.org/simple) returned a 403 Forbidden error. Check that the index URL is correct";
    let broken = "error: Failed to fetch\n  cause: HTTP status server error (500 Internal Server Error) for url (http://me:pw@i.org/simple/x/)";
    let broken_line = "hint: Packages were unavailable because the\n      network was disabled.";
    let index = |value| [("UV_DEFAULT_INDEX", value)];
    let told = [
        told(offline, &[("UV_OFFLINE", "1")]),
        told(offline, &[]),
        told(broken_line, &[("UV_OFFLINE", "1")]),
        told("error: Network connectivity is disabled, but `x` is not cached", &[]),
        told("  cause: Failed to fetch, network connectivity is disabled", &[]),
        told(&asked("https://i.org/simple"), &index("https://me:pw@i.org/simple")),
        told(&asked("https://own/simple"), &index("https://i.org/simple")),
        told(refused, &index("https://i.org/simple")),
        told(refused, &[]),
        told(&asked("https://i.org/simple").replace("401 Unauthorized", "403 Forbidden"), &[]),
        told(broken, &[]),
        told(&broken.replace("server", "client").replace("500 Internal Server Error", "429 Too Many Requests"), &[]),
        told(&broken.replace("Failed to fetch", "Failed to download `x @ http://i.org/x.whl`"), &[]),
        advice("error: Missing `Content-Type` header for `x`\n", &quiet(&index("https://i.org/simple")), None).unwrap(),
        advice("error: Unsupported `Content-Type` \"a/b\" for x\n", &quiet(&[]), None).unwrap(),
        told("", &index("pypi.org/simple")),
        told("", &index("htps://pypi.org/simple")),
        told("", &index("not a url")),
        told("", &index("/nowhere/simple")),
        told("", &index("file:///nowhere")),
        told("", &[("UV_INDEX", "own=https://i.org other.org/simple")]),
        told("", &[("UV_EXTRA_INDEX_URL", "https://i.org other.org/simple")]),
        told("", &index("https://i.org/simple")),
        told("", &[]),
    ];
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn no_password_is_told() {
    let told = [
        told("", &[("UV_INDEX", "https://i.org me:pw@i.org/simple")]),
        told("hint: An index URL (https://i.org/s) could", &[("UV_INDEX", "https://me:pw@i.org/s")]),
        told("  cause: HTTP status client error (403 Forbidden) for url (http://me:pw@i.org/simple/x/)", &[]),
        told("hint: An index URL (https://me:pw@i.org/s) could", &[]),
    ];
    assert!(told.iter().all(|told| told.contains("i.org") && !told.contains("pw")), "{told:?}");
}

#[test]
fn a_proxy_that_refuses_is_not_taken_for_the_index() {
    let plain =
        "  cause: HTTP status client error (407 Proxy Authentication Required) for url (http://me:pw@i.org/simple/x/)";
    let tunnel = "  cause: error sending request for url (https://i.org/simple/x/)\n  cause: client error (Connect)\n  \
                  cause: tunnel error: proxy authorization required";
    let what = "the proxy wants a name and a password, or refused those it got (407)";
    let right = "HTTP_PROXY = \"http://USER:PASSWORD@p:80\"";
    for value in ["http://p:80", "p:80", "http://me:pw@p:80/", "me:pw@p:80"] {
        let told = told(plain, &[("HTTP_PROXY", value)]);
        let slash = if value.ends_with('/') { "p:80/\"" } else { "p:80\"" };
        let right = right.replace("p:80\"", slash);
        assert_eq!(told, format!("{what}. Correct HTTP_PROXY in /p/hostler.toml:3: {right}"), "{value}");
    }
    let told_of_tunnel = told(tunnel, &[("HTTPS_PROXY", "http://p:80")]);
    assert_eq!(
        told_of_tunnel,
        format!("{what}. Correct HTTPS_PROXY in /p/hostler.toml:3: HTTPS_PROXY = \"http://USER:PASSWORD@p:80\"")
    );
    let told = told(plain, &[]);
    assert!(told.contains("set HTTPS_PROXY = \"http://USER:PASSWORD@HOST:PORT\"") && !told.contains("netrc"), "{told}");
}
