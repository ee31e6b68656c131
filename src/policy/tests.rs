//! Properties of decisions, and tables of what is judged how.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::mode::{KnownMode, Mode};
use crate::config::origin::{Origin, Setting};

#[expect(clippy::unnecessary_wraps, reason = "a setting is there or not")]
fn set<T>(value: T) -> Option<Setting<T>> {
    Some(Setting::declared(value))
}

fn words(list: &[&str]) -> Option<Setting<Vec<String>>> {
    set(list.iter().map(|&word| word.to_owned()).collect())
}

fn rules(policy: &DeclaredPolicy) -> Rules {
    let mut rules = Rules::new(policy, Path::new("/home/me"), Path::to_owned);
    rules.limit(policy, &Scope::Tool("t".to_owned()), |_| "tool t".to_owned());
    rules
}

fn path(real: &str) -> PathFact {
    PathFact { given: real.to_owned(), named: PathBuf::from(real), real: Ok(PathBuf::from(real)), size: None }
}

fn keys(decision: &Decision) -> Vec<&'static str> {
    decision.because().iter().map(|because| because.key).collect()
}

fn all_modes() -> Vec<Mode> {
    let own = [Mode::own("frozen", KnownMode::Lockdown), Mode::own("audit", KnownMode::Alert)];
    [KnownMode::Normal, KnownMode::Alert, KnownMode::Lockdown].map(Mode::from).into_iter().chain(own).collect()
}

#[test]
fn the_order_is_mode_rate_arguments_and_a_person_is_asked_last() {
    let policy = DeclaredPolicy {
        allowed_modes: set(vec![Mode::from(KnownMode::Normal)]),
        forbidden_in_modes: vec![Setting::declared(vec![Mode::from(KnownMode::Lockdown)])],
        requires_approval: set(true),
        rate_limit_per_hour: set(2),
        forbidden_paths: words(&["/secret/**"]).into_iter().collect(),
        ..DeclaredPolicy::default()
    };
    let rules = rules(&policy);
    let facts = |mode, hour, real: &str| Facts {
        mode,
        turns: vec![if hour >= 2 { Turn::After(Duration::from_secs(9)) } else { Turn::Now }],
        paths: vec![path(real)],
        ..Facts::default()
    };
    let all = rules.decide(&facts(Mode::from(KnownMode::Lockdown), 2, "/secret/a"));
    assert_eq!(keys(&all), ["forbidden_in_modes", "allowed_modes", "rate_limit_per_hour", "forbidden_paths"]);
    assert_eq!(all.because()[0].reason, "Tool not allowed in LOCKDOWN mode");
    assert_eq!(keys(&rules.decide(&facts(Mode::from(KnownMode::Normal), 2, "/a"))), ["rate_limit_per_hour"]);
    assert_eq!(
        keys(&rules.decide(&facts(Mode::from(KnownMode::Normal), 1, "/secret"))),
        ["forbidden_paths"],
        "the folder itself"
    );
    let ask = rules.decide(&facts(Mode::from(KnownMode::Normal), 1, "/secretly"));
    assert_eq!((ask.word(), keys(&ask)), ("ask", vec!["requires_approval"]));
}

#[test]
fn paths_match_patterns_as_specification_002_writes_them() {
    let policy = DeclaredPolicy {
        allowed_paths: words(&["$HOME/Dev/**", "~/notes/*.md", "/srv/data"]),
        forbidden_paths: words(&["$HOME/Dev/.git/**", "**/.ssh/**"]).into_iter().collect(),
        max_file_size_mb: set(1),
        ..DeclaredPolicy::default()
    };
    let rules = rules(&policy);
    let decide = |real: &str| rules.decide(&Facts { paths: vec![path(real)], ..Facts::default() });
    for allowed in ["/home/me/Dev", "/home/me/Dev/a/b", "/home/me/notes/x.md", "/srv/data", "/home/me/Dev/.github/x"] {
        assert_eq!(decide(allowed), Decision::Allowed, "{allowed}");
    }
    let denied = [
        ("/home/me/notes/deep/x.md", "allowed_paths"),
        ("/srv/data/x", "allowed_paths"),
        ("/home/me/Devil", "allowed_paths"),
        ("/home/me", "allowed_paths"),
        ("/home/me/Dev/.git", "forbidden_paths"),
        ("/home/me/Dev/.git/config", "forbidden_paths"),
    ];
    for (real, key) in denied {
        assert_eq!(keys(&decide(real)), [key], "{real}");
    }
    let unknown = PathFact { real: Err("is not a path".to_owned()), ..path("x") };
    let decision = rules.decide(&Facts { paths: vec![unknown], ..Facts::default() });
    assert_eq!(keys(&decision), ["forbidden_paths", "allowed_paths"], "what is not known is not allowed");
    let large = PathFact { size: Some((1 << 20) + 1), ..path("/srv/data") };
    assert_eq!(keys(&rules.decide(&Facts { paths: vec![large], ..Facts::default() })), ["max_file_size_mb"]);
    assert_eq!(keys(&rules.decide(&Facts { bytes: 2 << 20, ..Facts::default() })), ["max_file_size_mb"]);
}

#[test]
fn links_of_the_folders_that_a_pattern_begins_with_are_followed() {
    let policy = DeclaredPolicy { allowed_paths: words(&["/tmp/work/**"]), ..DeclaredPolicy::default() };
    let real = |folder: &Path| Path::new("/private").join(folder.strip_prefix("/").unwrap());
    let rules = Rules::new(&policy, Path::new("/home/me"), real);
    for given in ["/private/tmp/work/a", "/private/tmp/work", "/tmp/work/a"] {
        assert_eq!(rules.decide(&Facts { paths: vec![path(given)], ..Facts::default() }), Decision::Allowed, "{given}");
    }
}

/// Each command with what it is read as, or none if it is not judged.
#[test]
fn commands_are_read_as_a_shell_reads_them() {
    let read = |text: &str| {
        commands(text).map(|found| found.words.iter().map(|one| one.join("|")).collect::<Vec<_>>().join(" & ")).ok()
    };
    let judged = [
        ("ls -la", "ls|-la"),
        ("a && b || c; d | e & f\ng", "a & b & c & d & e & f & g"),
        ("'r'\"m\" -\\r\\f x", "rm|-rf|x"),
        ("echo \"a;b\" 'c && d' e\\;f", "echo|a;b|c && d|e;f"),
        ("ls # rm x", "ls"),
        ("ls 2>/dev/null 2>&1 >& 2", "ls"),
        ("echo a\\\nb", "echo|ab"),
        ("echo \\\n a \\\n", "echo|a"),
        ("echo a#b", "echo|a#b"),
        ("", ""),
        ("echo $HOME \"$X\"", "echo|$HOME|$X"),
        ("ls; # only a comment", "ls"),
        ("echo 'if' fi", "echo|if|fi"),
        ("a |& b", "a & b"),
    ];
    for (text, wanted) in judged {
        assert_eq!(read(text).as_deref(), Some(wanted), "{text:?}");
    }
    let not_judged = [
        "$(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "echo \"`rm x`\"",
        "cat <<EOF\nx\nEOF",
        "cat <<< x",
        "diff <(a) <(b)",
        "(rm x)",
        "{ rm x; }",
        "if true; then rm x; fi",
        "for a in b; do c; done",
        "f() { rm x; }",
        "PATH=. ls",
        "A+=b ls",
        "$X y",
        "l? x",
        "ls > file",
        "ls >> file",
        "ls < file",
        "ls &> file",
        "ls >| file",
        "ls >&file",
        "echo 'open",
        "echo \"open",
        "ls \\",
        "! ls",
        "echo ${X:-`rm`}",
        "echo $'a'",
        "[[ a ]]",
        "time ls",
        "ls\0",
        "'ls\0'",
        "~/ls",
        "echo $((1))",
        "case a in b) c;; esac",
        "{a,b}",
    ];
    for text in not_judged {
        assert_eq!(read(text), None, "{text:?}");
    }
}

#[test]
fn commands_are_compared_word_by_word() {
    let policy = DeclaredPolicy { allowed_commands: words(&["git status", "ls"]), ..DeclaredPolicy::default() };
    let allowed = rules(&policy);
    let policy = DeclaredPolicy {
        forbidden_commands: words(&["rm", "git push"]).into_iter().collect(),
        ..DeclaredPolicy::default()
    };
    let forbidden = rules(&policy);
    let decide = |rules: &Rules, text: &str| {
        let facts = Facts { commands: vec![(text.to_owned(), commands(text))], ..Facts::default() };
        rules.decide(&facts) == Decision::Allowed
    };
    for text in ["git status", "git status -s", "ls $HOME; git 'status'", "ls *"] {
        assert!(decide(&allowed, text), "{text}");
    }
    for text in [
        "git",
        "git stat",
        "gits status",
        "git -c x=y status",
        "lsof",
        "/tmp/ls",
        "ls; rm x",
        "ls | sh",
        "ls\nrm",
        "ls $(rm)",
        "./ls",
    ] {
        assert!(!decide(&allowed, text), "{text}");
    }
    for text in ["ls", "git pull", "echo push git", "format x"] {
        assert!(decide(&forbidden, text), "{text}");
    }
    let evasions = [
        "rm x",
        "/bin/rm x",
        "'r'm x",
        "\\rm x",
        "env rm x",
        "sudo -u a rm x",
        "timeout 5 rm x",
        "find . -exec rm {} +",
        "ls; rm x",
        "git push",
        "git  push -f",
        "sh -c 'r''m x'",
        "eval r''m",
        "echo rm | xargs env",
        "/bin/bash script",
        "ls $X",
        "ls r*",
        "command rm",
    ];
    for text in evasions {
        assert!(!decide(&forbidden, text), "{text}");
    }
}

#[test]
fn hosts_are_those_of_the_patterns_and_those_beneath() {
    let policy =
        DeclaredPolicy { allowed_hosts: words(&["example.com", "*.good.org", "::1"]), ..DeclaredPolicy::default() };
    let rules = rules(&policy);
    let decide = |host: Option<&str>| {
        let fact = HostFact { given: "given".to_owned(), host: host.map(str::to_owned) };
        rules.decide(&Facts { hosts: vec![fact], ..Facts::default() }) == Decision::Allowed
    };
    for host in ["example.com", "a.good.org", "a.b.good.org", "::1"] {
        assert!(decide(Some(host)), "{host}");
    }
    for host in ["www.example.com", "good.org", ".good.org", "evilgood.org", "example.com.evil.org", "127.0.0.1"] {
        assert!(!decide(Some(host)), "{host}");
    }
    assert!(!decide(None), "an address without a host");
}

#[test]
fn what_an_argument_is_comes_from_the_schema_and_the_settings() {
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "from": {"type": "string", "format": "path"},
        "many": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "maybe": {"anyOf": [{"type": "string", "format": "path"}, {"type": "null"}], "default": "."},
        "url": {"type": "string", "format": "uri"},
        "note": {"type": "string"}, "count": {"type": "integer"},
    }, "$defs": {"Item": {"type": "object", "properties": {"file": {"type": "string", "format": "path"}}}}});
    let schema = schema.as_object().unwrap();
    let names =
        |arguments: &[Argument]| arguments.iter().map(|one| one.name.clone().unwrap_or_default()).collect::<Vec<_>>();
    let policy = DeclaredPolicy {
        path_arguments: words(&["note", "not_there"]).into_iter().collect(),
        ..DeclaredPolicy::default()
    };
    let found = Arguments::of(schema, &policy, false);
    assert_eq!(names(&found.paths), ["from", "many", "maybe", "note"]);
    assert_eq!((names(&found.commands), names(&found.hosts)), (vec![], vec!["url".to_owned()]));
    let given = json!({"many": [{"file": "a"}, {"file": "b"}]});
    let texts: Vec<&str> = found.paths.iter().flat_map(|one| one.texts(given.as_object().unwrap())).collect();
    assert_eq!(texts, ["a", "b", "."], "what is not given is its default");
}

#[test]
fn a_folder_with_any_name_can_have_patterns() {
    for name in ["we[i]rd", "a{b}", "a!b", "a*b", "a\\b", "a?b", "plain"] {
        let folder = PathBuf::from("/srv").join(name);
        let real = |path: &Path| match path.strip_prefix(folder.join("link")) {
            Ok(rest) => folder.join("real").join(rest),
            Err(_) => path.to_owned(),
        };
        let patterns: Vec<String> = ["plain/**", "link/**", "one/*.key"].map(str::to_owned).into();
        let found = patterns::PathPatterns::new(&patterns, Path::new("/home/me"), &folder, &real);
        assert!(found.is_whole, "{name}");
        for inside in ["plain", "plain/k", "link/k", "real/k", "real", "one/a.key"] {
            assert!(found.has(&folder.join(inside)), "{name}/{inside}");
        }
        for outside in ["other", "one/a.pub", "realm"] {
            assert!(!found.has(&folder.join(outside)), "{name}/{outside}");
        }
        assert!(!found.has(Path::new("/srv/other/plain/k")), "{name}");
    }
    let odd = std::os::unix::ffi::OsStrExt::from_bytes(b"/srv/\xff");
    assert!(
        !patterns::PathPatterns::new(
            &["a/**".to_owned()],
            Path::new("/"),
            Path::new::<std::ffi::OsStr>(odd),
            &|path| path.to_owned()
        )
        .is_whole
    );
}

#[test]
fn names_in_a_dictionary_and_arguments_without_a_name_are_judged() {
    let path = json!({"type": "string", "format": "path"});
    let schema = json!({"properties": {
        "note": {"type": "string"},
        "by_path": {"type": "object", "propertyNames": path, "additionalProperties": {"type": "string"}},
        "deep": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "record": {"type": "object", "properties": {"file": path, "title": {"type": "string"}, "any": {}}},
        "maybe": {"anyOf": [path, {"type": "null"}, {"enum": ["-"]}]},
        "pair": {"type": "array", "prefixItems": [path, {"type": "string"}]},
    }, "additionalProperties": path, "$defs": {
        "Item": {"anyOf": [{"type": "null"}, {"type": "object", "propertyNames": path, "additionalProperties": {"type": "integer"}},
                           {"type": "object", "properties": {"next": {"$ref": "#/$defs/Item"}, "at": path}}]},
    }});
    let found = Arguments::of(schema.as_object().unwrap(), &DeclaredPolicy::default(), false);
    let judged = |given: serde_json::Value| {
        let texts = found.paths.iter().flat_map(|one| one.texts(given.as_object().unwrap()));
        let texts: std::collections::BTreeSet<String> = texts.map(str::to_owned).collect();
        texts.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(judged(json!({"note": "n", "by_path": {"a": "b"}, "unnamed": "c", "more": ["d"]})), "a c d");
    assert_eq!(
        judged(json!({"record": {"file": "e", "title": "t", "any": ["u"], "new": "v"}})),
        "e u v",
        "what is unknown is judged"
    );
    assert_eq!(judged(json!({"maybe": "f", "pair": ["g", "text", "h"]})), "f g h");
    assert_eq!(judged(json!({"maybe": ["i"], "record": "j"})), "i", "a value of another type");
    assert_eq!(judged(json!({"deep": [null, {"k": 1}, {"next": {"next": {"at": "l"}}}]})), "at k l next");
}

#[test]
fn a_rule_that_cannot_be_kept_denies() {
    let policy = DeclaredPolicy { allowed_paths: words(&["/srv/**"]), ..DeclaredPolicy::default() };
    let decide = |schema: serde_json::Value, policy: &DeclaredPolicy, is_general: bool| {
        let mut rules = rules(policy);
        rules.keep_for(&Arguments::of(schema.as_object().unwrap(), policy, false), |_| is_general);
        rules.decide(&Facts::default()).word()
    };
    let text = json!({"additionalProperties": false, "properties": {"file": {"type": "string"}}});
    let number = json!({"additionalProperties": false, "properties": {"n": {"type": "integer"}, "c": {"enum": ["a"]}}});
    assert_eq!(decide(text.clone(), &policy, false), "denied");
    assert_eq!(decide(text.clone(), &policy, true), "allowed", "a rule for all tools");
    assert_eq!(decide(number, &policy, false), "allowed", "nothing of it can be a path");
    assert_eq!(decide(json!({}), &policy, false), "denied", "nothing is known of it");
    let named = |names: &[&str], origin: Origin| {
        let value = names.iter().map(|&name| name.to_owned()).collect();
        DeclaredPolicy { path_arguments: vec![Setting { value, origin }], ..policy.clone() }
    };
    assert_eq!(
        decide(text.clone(), &named(&[], Origin::Default), false),
        "allowed",
        "the operator says that there is none"
    );
    assert_eq!(decide(text.clone(), &named(&["fil"], Origin::Default), false), "denied", "it has no such argument");
    for names in [&[][..], &["file"]] {
        assert_eq!(decide(text.clone(), &named(names, Origin::Tool), false), "denied", "the tool says so itself");
    }
}

fn policies() -> impl Strategy<Value = DeclaredPolicy> {
    let mode = || prop::sample::select(all_modes());
    let modes = || prop::option::of(prop::collection::vec(mode(), 0..3));
    let patterns = || {
        let pattern = prop::sample::select(vec!["/a/**", "/a/b", "/a/b/**", "/**", "**/c", "/d/*"]);
        prop::option::of(prop::collection::vec(pattern.prop_map(str::to_owned), 0..3))
    };
    (modes(), modes(), prop::option::of(any::<bool>()), modes(), prop::option::of(1..4_usize), patterns(), patterns())
        .prop_map(|(allowed_modes, forbidden, approval, asked, hour, allowed, denied)| DeclaredPolicy {
            allowed_modes: allowed_modes.and_then(set),
            forbidden_in_modes: forbidden.and_then(set).into_iter().collect(),
            requires_approval: approval.and_then(set),
            requires_approval_in_modes: asked.and_then(set).into_iter().collect(),
            rate_limit_per_hour: hour.and_then(set),
            allowed_paths: allowed.and_then(set),
            forbidden_paths: denied.and_then(set).into_iter().collect(),
            ..DeclaredPolicy::default()
        })
}

fn facts() -> impl Strategy<Value = Facts> {
    let mode = prop::sample::select(all_modes());
    let real = prop::sample::select(vec!["/a", "/a/b", "/a/b/c", "/d/e", "/x"]);
    (mode, 0..5_usize, prop::collection::vec(real, 0..3)).prop_map(|(mode, hour, reals)| Facts {
        mode,
        turns: vec![if hour >= 3 { Turn::Never } else { Turn::Now }],
        paths: reals.into_iter().map(path).collect(),
        ..Facts::default()
    })
}

/// How strict a decision is.
fn strictness(decision: &Decision) -> u8 {
    match decision {
        Decision::Allowed => 0,
        Decision::Ask(_) => 1,
        Decision::Denied(_) => 2,
    }
}

fn without(policy: &DeclaredPolicy, keys: &[&str]) -> DeclaredPolicy {
    let mut less = policy.clone();
    for key in keys {
        match *key {
            "allowed_modes" => less.allowed_modes = None,
            "forbidden_in_modes" => less.forbidden_in_modes.clear(),
            "requires_approval" => less.requires_approval = None,
            "requires_approval_in_modes" => less.requires_approval_in_modes.clear(),
            "rate_limit_per_hour" => less.rate_limit_per_hour = None,
            "allowed_paths" => less.allowed_paths = None,
            "forbidden_paths" => less.forbidden_paths.clear(),
            other => panic!("{other}"),
        }
    }
    less
}

proptest! {
    /// Looked up or matched together, a pattern has the paths that it has alone.
    #[test]
    fn patterns_together_have_what_each_has(
        patterns in prop::collection::vec("(/[ab]{1,2}|/\\*|/\\*\\*){1,3}", 0..4),
        path in "(/[ab]{1,2}){0,4}",
    ) {
        let path = Path::new(if path.is_empty() { "/" } else { &path });
        let together = patterns::PathPatterns::new(&patterns, Path::new("/h"), Path::new("/f"), &|folder: &Path| folder.to_owned());
        let one = |text: &str| crate::config::rules::glob(text).unwrap().compile_matcher().is_match(path);
        let alone = patterns.iter().any(|pattern| one(pattern) || pattern.strip_suffix("/**").is_some_and(|start| one(if start.is_empty() { "/" } else { start })));
        prop_assert_eq!(together.has(path), alone, "{:?} {:?}", patterns, path);
    }

    #[test]
    fn to_forbid_more_never_allows_more(policy in policies(), facts in facts(), mode in 0..5_usize, pattern in 0..3_usize) {
        let before = strictness(&rules(&policy).decide(&facts));
        let mut more = policy.clone();
        let mode = all_modes()[mode];
        more = more.under(DeclaredPolicy { forbidden_in_modes: vec![Setting::declared(vec![mode])], ..DeclaredPolicy::default() });
        let pattern = ["/a/**", "/**", "/x"][pattern].to_owned();
        let forbidden_paths = vec![Setting::declared(vec![pattern])];
        more = more.under(DeclaredPolicy { forbidden_paths, ..DeclaredPolicy::default() });
        more.requires_approval = set(true);
        prop_assert!(strictness(&rules(&more).decide(&facts)) >= before);
    }

    #[test]
    fn the_rules_that_are_named_are_those_that_decided(policy in policies(), facts in facts()) {
        let decision = rules(&policy).decide(&facts);
        let keys = keys(&decision);
        prop_assert_eq!(keys.is_empty(), decision == Decision::Allowed);
        let less = rules(&without(&policy, &keys)).decide(&facts);
        prop_assert!(keys.is_empty() || strictness(&less) < strictness(&decision), "{:?} {:?}", decision, less);
    }

    #[test]
    fn the_order_within_a_list_means_nothing(policy in policies(), facts in facts()) {
        let mut turned = policy.clone();
        for paths in turned.allowed_paths.iter_mut().chain(&mut turned.forbidden_paths) {
            paths.value.reverse();
        }
        for modes in turned.allowed_modes.iter_mut().chain(&mut turned.forbidden_in_modes) {
            modes.value.reverse();
        }
        prop_assert_eq!(rules(&turned).decide(&facts), rules(&policy).decide(&facts));
    }

    #[test]
    fn any_text_is_read_to_an_end(text in "\\PC{0,60}", shell in "[a-z '\"\\\\$`;&|<>(){}#=*\n]{0,40}") {
        let _ = (commands(&text), commands(&shell));
    }

    /// Words that a shell would be given in quotes come back as they are.
    #[test]
    fn quoted_words_come_back(words in prop::collection::vec("[^\\x00]{0,12}", 1..5)) {
        let text = shlex::try_join(words.iter().map(String::as_str)).unwrap();
        if let Ok(found) = commands(&format!("echo {text}")) {
            prop_assert_eq!(&found.words[0][1..], &words[..]);
            prop_assert_eq!(found.words.len(), 1);
        } else {
            prop_assert!(false, "{:?}", text);
        }
    }
}
