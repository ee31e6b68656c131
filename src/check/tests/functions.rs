//! What is told of functions, and of what is none.

use super::{WELL, checked};

/// What is told of a text under one rule.
fn told_of(text: &str, rule: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.py"), text).unwrap();
    let report = checked(folder.path());
    let of_rule = report.findings().filter(|(_, finding)| finding.rule.name == rule);
    of_rule.map(|(_, finding)| format!("{}; {}", finding.message, finding.fix)).collect()
}

#[test]
fn what_to_write_for_a_shared_default_can_be_copied() {
    for (parameter, right) in [
        ("acc: list = []", "acc: list | None = None"),
        ("acc: dict[str, int] = {}", "acc: dict[str, int] | None = None"),
        ("acc: list | None = []", "acc: list | None = None"),
        ("acc: 'list[int]' = []", "acc: 'list[int] | None' = None"),
        ("acc: Optional[list] = []", "acc: Optional[list] = None"),
        ("acc=[]", "acc: list[str] | None = None"),
        ("acc=[1]", "acc: list[int] | None = None"),
        ("acc: dict[\n  str, int] = {}", "acc: dict[ str, int] | None = None"),
    ] {
        let told =
            told_of(&format!("def f({parameter}) -> int:\n    \"\"\"F.\"\"\"\n    return 1\n"), "shared-default");
        let [told] = &told[..] else { panic!("{parameter}: {told:?}") };
        assert!(told.contains(&format!("; write `{right}`, and `acc = acc or ")), "{parameter}: {told}");
    }
}

#[test]
fn a_file_without_public_functions_is_warned_about() {
    let class = "class Client:\n    def search(self, query: str): ...\n";
    assert_eq!(told_of(class, "no-tools").len(), 1);
    assert_eq!(told_of(&format!("{class}{WELL}"), "no-tools"), [] as [&str; 0]);
}
