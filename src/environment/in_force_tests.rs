use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::environment::circumstances::known_advice;

const UNREACHED: &str = "error: Failed to fetch: `https://i.org/simple/six/`\n  cause: error sending request for url (https://i.org/simple/six/)\n";
const UNKNOWN: &str = "error: Failed to fetch\n  cause: invalid peer certificate: UnknownIssuer\n";

fn told(stderr: &str, variables: &[(&str, &str)]) -> String {
    known_advice(stderr, &quiet(variables), None).unwrap()
}

#[test]
fn what_is_in_force_is_suspected_first() {
    let (proxy, index) = (("HTTPS_PROXY", "http://me:pw@p:3128"), ("UV_DEFAULT_INDEX", "https://i.org/simple"));
    let told = [
        told(UNREACHED, &[]),
        told(UNREACHED, &[proxy]),
        told(UNREACHED, &[index]),
        told(UNREACHED, &[index, proxy]),
        told(UNREACHED, &[proxy, ("NO_PROXY", "localhost,.i.org")]),
        told(UNREACHED, &[proxy, ("no_proxy", "org")]),
        told(UNREACHED, &[proxy, ("NO_PROXY", "*")]),
        told(UNREACHED, &[proxy, ("NO_PROXY", ".org.uk rg")]),
        told(UNREACHED, &[("UV_DEFAULT_INDEX", "https://another.org/simple")]),
        told(UNREACHED, &[("UV_DEFAULT_INDEX", "https://pypi.org/simple/")]),
        told(&UNREACHED.replace("https", "http"), &[proxy, ("http_proxy", "http://q:1")]),
        told(UNKNOWN, &[]),
        told(UNKNOWN, &[("SSL_CERT_FILE", "/ca.pem")]),
        told(UNKNOWN, &[("SSL_CERT_DIR", "/certs")]),
    ];
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn no_password_is_told() {
    for proxy in ["me:pw@p:3128", "http://me:pw@p:3128", "http://me:p@w@p:3128"] {
        let told = told(UNREACHED, &[("HTTPS_PROXY", proxy)]);
        assert!(told.contains("****@p:3128") && !told.contains("pw") && !told.contains("p@w"), "{told}");
    }
}

#[test]
fn an_index_of_the_header_is_in_force_where_no_variable_names_another() {
    let header = "[[tool.uv.index]]\nurl = \"https://own/simple\"\ndefault = true\n";
    let header = Metadata::from_toml(header, 2, &Arc::new(PathBuf::from("a.py"))).unwrap();
    let told = |variables: &[(&str, &str)]| quiet(variables).other_index(Some(&header)).unwrap().to_string();
    assert_eq!(told(&[]), "[[tool.uv.index]] = https://own/simple (the header, line 3)");
    let variable = "UV_DEFAULT_INDEX = https://i.org/simple (/p/hostler.toml:3)";
    assert_eq!(told(&[("UV_DEFAULT_INDEX", "https://i.org/simple")]), variable);
    assert_eq!(quiet(&[]).other_index(None), None);
}
