use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use toml::de::DeTable;

use super::{Mistake, explain};
use crate::config::section::Source;

fn told(text: &str) -> String {
    let source = Source { file: Arc::new(PathBuf::from("a.py")), text: text.into(), first_line: 2, is_header: true };
    let error = DeTable::parse(text).unwrap_err();
    let Mistake { at, what, fix } = explain(&source, &error);
    format!("{}: {what}; {fix}", source.line_at(at))
}

fn all(texts: &[&str]) -> String {
    texts.iter().map(|text| told(text)).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_never_closed_is_told_where_it_is_opened() {
    let texts = [
        "dependencies = [\"httpx\"\nrequires-python = \">=3.11\"",
        "dependencies = [\n  \"httpx\",\n  \"rich\",\nrequires-python = \">=3.11\"",
        "dependencies = [\n  \"httpx\",\n\n[tool.hostler]\ntimeout = \"3s\"",
        "dependencies = [",
        "requires-python = \">=3.11\ndependencies = []",
        "requires-python = '>=3.11\ndependencies = []",
        "requires-python = \">=3.11'\ndependencies = []",
        "requires-python = \"\"\">=3.11\ndependencies = []",
        "dependencies = [\"httpx]\nrequires-python = \">=3.11\"",
        "dependencies = [\"httpx, \"rich\"]",
        "dependencies = [\"httpx[http2,brotli]>=0.27,<1\", rich\"]",
        "[tool]\nhostler = { timeout = \"3s\"",
        "[tool.hostler\ntimeout = \"3s\"",
    ];
    insta::assert_snapshot!(all(&texts));
}

/// Whoever is told of one line only loses the packages of the others.
#[test]
fn a_list_without_brackets_is_told_with_all_of_its_lines() {
    let bare = "a list stands in square brackets, and each of its texts in quotes";
    let plain = "a list stands in square brackets";
    for (text, what, to) in [
        ("dependencies = requests\n  rich", bare, 3),
        ("dependencies = requests\nrich", bare, 3),
        ("dependencies = requests, \n\n  rich # the terminal\nrequires-python = \">=3.9\"", bare, 4),
        ("dependencies = \"requests\",\n  \"rich\",", plain, 3),
        ("dependencies = \"requests\"\n  \"rich\"", plain, 3),
        ("dependencies = 'requests', 'rich',\n", "", 0),
        ("dependencies =\nrequests\nrich\n[tool.hostler]", bare, 4),
        ("dependencies:\n  requests\n  # it colours\n  rich", bare, 5),
        ("dependencies = (\n\"requests\",\n\"rich\",\n)", plain, 5),
        ("dependencies = (\n  requests,\n  rich\n)\nrequires-python = \">=3.9\"", bare, 5),
        ("dependencies = (\"requests\",\n\"rich\")", plain, 3),
        ("dependencies =\n\"requests\",\n\"rich\",\n]", plain, 5),
        ("dependencies:\n  - requests\n  - rich", "a list is written as YAML has it", 4),
    ] {
        let place = format!("in the place of lines 2 to {to}, ");
        let place = if to == 0 { "" } else { &place };
        let what = if what.is_empty() { bare } else { what };
        let right = format!("2: {what}; {place}write exactly `# dependencies = [\"requests\", \"rich\"]`");
        assert_eq!(told(text), right, "{text}");
    }
    let versions = told("dependencies = requests>=2,<3\nrich == 13.*\nhttpx[http2] ~=0.27");
    assert!(
        versions.ends_with("`# dependencies = [\"requests>=2,<3\", \"rich == 13.*\", \"httpx[http2] ~=0.27\"]`"),
        "{versions}"
    );
    let marked = told("dependencies =\n\"six; python_version < '3'\"\n'x; y == \"z\"'");
    assert!(marked.ends_with("`# dependencies = [\"six; python_version < '3'\", 'x; y == \"z\"']`"), "{marked}");
}

#[test]
fn no_value_is_asked_for_what_is_no_key() {
    for text in ["x = 1\n)", "x = 1\n\"rich\",", "x = 1\n(", "timeout =\nsix seven", "dependencies = six\nwhat it does"]
    {
        let told = told(text);
        assert!(!told.contains(") = ") && !told.contains("\", = ") && !told.contains("( ="), "{text}: {told}");
    }
}

#[test]
fn a_line_is_told_as_it_was_meant() {
    let texts = [
        "dependencies = [\n\"httpx\"\n\"rich\"\n]",
        "dependencies = [\n\"httpx\" # the web\n\"rich\"\n]",
        "dependencies = [\"httpx\" \"rich\"]",
        "dependencies = [httpx>=0.27,<1, rich]  # two",
        "dependencies = (\"httpx\", \"rich\")",
        "dependencies = \"httpx\"]",
        "dependencies: [\"httpx\"]",
        "requires-python: \">=3.11\"\ndependencies = []",
        "requires-python = >=3.11",
        "requires-python = “>=3.11”",
        "requires-python = \">=3.11\",",
        "requires-python == \">=3.11\"",
        "requires-python \">=3.11\"",
        "requires-python = \">=3.11\" dependencies = []",
        "dependencies = [] \\",
        "dependencies = [] // none",
        "dependencies = [\"x @ file:///C:\\new\\path\"]",
        "[tool.hostler]\ntimeout = 30s",
        "[tool.hostler]\nvalidate = True",
        "[tool.hostler]\nmax queue = 3",
        "[tool.hostler]\nmax_queue = 010",
        "[tool.hostler]]\ntimeout = \"3s\"",
    ];
    insta::assert_snapshot!(all(&texts));
}

#[test]
fn what_other_languages_have_is_told_as_toml_has_it() {
    let texts = [
        "dependencies = [\n  \"six\",   // http\n  \"idna\",\n]",
        "dependencies = [\n  \"six\",\n  // http\n  \"idna\",\n]",
        "dependencies = {\n  \"six\",\n}",
        "tool.hostler]\ntimeout = \"3s\"",
        "dependencies:\n  - six\n  - \"idna>=3\"\nrequires-python = \">=3.9\"",
        "dependencies = \n- six",
        "dependencies =\n  \"six\",\n  \"idna\",",
        "dependencies = idna, six",
        "dependencies = six",
        "dependencies = six>=1, idna==3",
        "secrets = A_KEY, B_KEY",
        "pass_env = HOME, LANG",
        "tools = one, two",
        "ignore = one, two",
        "dependencies = \"idna\", \"six\"",
        "dependencies = [\"idna\"; \"six; python_version > '3'\"]",
        "[tool.hostler]\ntools.greet = {timeout = \"3s\" effects = \"once\"}",
        "[tool.hostler]\ntools.greet = { timeout: \"3s\" }",
        "[tool.hostler]\ntools.greet = { \"timeout\": \"3s\", max_queue: 3 }",
        "[tool.a]\nconfig = { A = \"1\" B = [1, 2] }",
        "[tool.a]\nenv = { API_TOKEN = \"s3cret\" B = \"2\" }",
        "[secrets]\nK = { file = \"/x\" env = \"Y\" }",
        "[secrets]\nK = { file = \"/x\" mode = \"y\" }",
        "[secrets]\nK = { env = \"Y\" mode = \"y\" }",
        "[secrets]\nK = { command = [\"x\"] mode = \"y\" }",
    ];
    insta::assert_snapshot!(all(&texts));
}

#[test]
fn where_no_line_is_certain_it_is_told_what_toml_expects() {
    let texts = [
        "[tool.hostler]\ntimeout = None",
        "requires-python =\ndependencies = []",
        "dependencies",
        "dependencies = []\nThis tool looks for things.",
        "dependencies = []\ndependencies = [\"httpx\"]",
        "[tool.hostler]\ntimeout = \"3s\"\n[tool.hostler]\npack = \"x\"",
        "a = { b = \"3s\" c = \"x\" }",
    ];
    insta::assert_snapshot!(all(&texts));
}

#[test]
fn what_may_be_a_secret_is_not_told() {
    for text in [
        "[secrets]\nKEY = s3cret\n",
        "[secrets]\nKEY: \"s3cret\"\n",
        "[secrets]\nKEY = \"s3cret\n",
        "[secrets]\nA = { env = \"A\"\n[tool]\nx = \"s3cret\n",
        "[environment.env]\nUV_INDEX_PASSWORD = s3cret\n",
        "API_TOKEN = s3cret\n",
        "API_TOKEN \"s3cret\"\n",
        "[secrets]\ns3cret\n",
        "[tool.a]\nenv = { API_TOKEN = \"s3cret\" B = \"2\" }\n",
    ] {
        let told = told(text);
        assert!(!told.contains("s3cret"), "{text:?}: {told}");
    }
    insta::assert_snapshot!(told("[secrets]\nKEY = s3cret\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_too_strange(text in "([a=\\[\\]{}\"'\\\\# \n,:“é]|\\[t\\]\n|\n\n){0,40}") {
        if DeTable::parse(&text).is_err() {
            told(&text);
        }
    }
}
