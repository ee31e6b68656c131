//! What `__all__` names that another file defines.

use super::several::{reported, served};

const BOXES: &str = "class Base:\n    def health(self) -> str: ...\nclass Box(Base):\n    def __init__(self, path): ...\n    \
                     def search(self, q: str): ...\n    @property\n    def size(self): ...\n    def _own(self): ...\n\
                     def lookup(word: str): ...\nready = Box('x')\n";

fn of(main: &str) -> Vec<String> {
    served(&[("main.py", main), ("boxes.py", BOXES)])
}

#[test]
fn an_instance_of_a_neighbours_class_has_its_methods() {
    let methods = ["main.health box.health", "main.search box.search"];
    for made in [
        "from boxes import Box\nbox = Box('x')",
        "import boxes\nbox = boxes.Box('x')",
        "from boxes import ready as box",
    ] {
        let text = format!("{made}\ndef own(): ...\n__all__ = ['box']\n");
        assert_eq!(of(&text), methods, "{made}");
        assert!(reported(&[("main.py", &text), ("boxes.py", BOXES)]).is_empty(), "{made}");
    }
    let through = [
        ("main.py", "from all_boxes import Box\nbox = Box('x')\n__all__ = ['box']\n"),
        ("all_boxes.py", "from boxes import Box\n"),
        ("boxes.py", BOXES),
    ];
    assert_eq!(served(&through), methods);
}

#[test]
fn a_function_of_a_neighbour_is_a_tool_where_it_is_named() {
    let text = "from boxes import lookup as find, lookup\ndef own(): ...\n__all__ = ['find', 'own', 'lookup']\n";
    let found = ["main.own own", "main.find beside:boxes.py:lookup", "main.lookup beside:boxes.py:lookup"];
    assert_eq!(of(text), found);
    assert_eq!(of("from boxes import lookup\ndef own(): ...\n"), ["main.own own"], "an import alone offers nothing");
}

#[test]
fn an_instance_has_the_methods_of_a_base_class_in_another_file() {
    let text = "from boxes import Base\nclass Mine(Base):\n    def own(self): ...\nmine = Mine()\n__all__ = ['mine']\n";
    assert_eq!(of(text), ["main.own mine.own", "main.health mine.health"]);
    let webui = "'''\ntitle: T\n'''\nfrom boxes import Base\nclass Tools(Base):\n    def own(self): ...\n";
    assert_eq!(of(webui), ["main.own Tools.own", "main.health Tools.health"]);
    let own = "from boxes import Base\nclass Mine(Base):\n    def health(self, deep: bool): ...\nmine = Mine()\n__all__ = ['mine']\n";
    assert_eq!(of(own), ["main.health mine.health"]);
}

#[test]
fn what_is_not_found_is_reported() {
    let text = "import requests\nfrom boxes import Box\nsession = requests.Session()\n__all__ = ['session', 'Box', 'nothing']\n";
    let found = reported(&[("main.py", text), ("boxes.py", "Box = 1\n")]);
    let beside = "from boxes import Box, lookup\n__all__ = ['lookup', 'Box', 'join']\nfrom os.path import join\n";
    assert_eq!(of(beside), ["main.lookup beside:boxes.py:lookup"], "a class is exported for its name only");
    let found_beside = reported(&[("main.py", beside), ("boxes.py", BOXES)]);
    assert!(["`Box`", "`join`"].iter().all(|name| found_beside.iter().any(|it| it.contains(name))), "{found_beside:?}");
    assert_eq!(found_beside.len(), 2);
    let words = [
        "main exports: `__all__` names `session`, whose class `requests.Session` is of another package",
        "main exports: `__all__` names `Box`, which is not a function of this file",
        "main exports: `__all__` names `nothing`, which is not a function of this file",
    ];
    assert!(words.iter().all(|one| found.iter().any(|it| it == one)), "{found:?}");
}

#[test]
fn a_class_of_a_neighbour_offers_what_it_says() {
    let marked = "from strands import tool\nclass Db:\n    @tool(name='q')\n    def query(self, sql: str): ...\n    def close(self): ...\n";
    let main = "from db import Db\ndb = Db()\n__all__ = ['db']\n";
    assert_eq!(served(&[("main.py", main), ("db.py", marked)]), ["db.q Db.query", "main.q db.query"]);
    let of_header = format!("# /// script\n# dependencies = []\n# ///\n{BOXES}");
    let beside = "from boxes import Box, lookup\nbox = Box('x')\n__all__ = ['box', 'lookup']\n";
    let found = served(&[("main.py", beside), ("boxes.py", &of_header)]);
    let of_main: Vec<&str> = found.iter().map(String::as_str).filter(|one| one.starts_with("main.")).collect();
    assert_eq!(of_main, ["main.health box.health", "main.search box.search", "main.lookup beside:boxes.py:lookup"]);
}

#[test]
fn names_by_a_star_or_an_assignment_are_found() {
    assert_eq!(of("from boxes import *\n__all__ = ['lookup']\n"), ["main.lookup beside:boxes.py:lookup"]);
    let other_names = "def _search(q: str): ...\ndef find(q: str): ...\nsearch = _search\nagain = find\n__all__ = ['search', 'find', 'again']\n";
    assert_eq!(of(other_names), ["boxes.lookup lookup", "main.search search", "main.find find", "main.again again"]);
    let assigned = "import boxes\nfind = boxes.lookup\ndef own(): ...\n__all__ = ['find', 'own']\n";
    assert_eq!(of(assigned), ["main.own own", "main.find beside:boxes.py:lookup"]);
}
