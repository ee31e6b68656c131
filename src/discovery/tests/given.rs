//! Functions of other files that a server is given.

use super::folders::folder;
use super::several::{self, reported};
use crate::discovery::{ToolFile, scan};

const SERVER: &str = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n";
const NOTES: &str = "def search(q: str):\n    'Search them.'\ndef count(): ...\n";

fn served(files: &[(&str, &str)]) -> Vec<String> {
    let folder = folder(files);
    let found = scan(&[folder.path().to_owned()]);
    let of_file = |file: &ToolFile| {
        let names = file.functions.iter().map(|it| {
            format!("{}.{} {} {}", file.pack, it.name, it.symbol(), it.summary.as_deref().unwrap_or_default())
        });
        names.collect::<Vec<_>>()
    };
    found.files.iter().flat_map(of_file).collect()
}

#[test]
fn functions_of_other_files_are_tools_of_the_server_that_is_given_them() {
    let search = "s.search beside:notes.py:search Search them.";
    for (text, expected) in [
        ("from notes import search\nmcp.tool()(search)\n", search),
        ("import notes\nmcp.add_tool(notes.search)\n", search),
        ("from notes import search as find\ndef setup():\n    mcp.tool(find)\n", search),
        ("import notes\nfor one in (notes.search,):\n    mcp.add_tool(one)\n", search),
        ("from notes import search\nALL = [search]\nfor one in ALL:\n    mcp.tool()(one)\n", search),
        (
            "import notes\nfor name, one, text in [('find-it', notes.search, 'A.'), (KEY, notes.count, 'B.')]:\n    \
             mcp.tool(one, name=name, description=text)\n",
            "s.find_it beside:notes.py:search A.",
        ),
        (
            "import notes\nTOOLS = {'find-it': notes.search, KEY: notes.count}\nfor name, one in TOOLS.items():\n    mcp.tool(name=name)(one)\n",
            "s.find_it beside:notes.py:search Search them.",
        ),
        ("import notes\nfor one in {KEY: notes.search}.values():\n    mcp.add_tool(one)\n", search),
        (
            "import notes\nfor name, one in [('find-it', notes.search)]:\n    mcp.add_tool(one, name)\n",
            "s.find_it beside:notes.py:search Search them.",
        ),
        (
            "import notes\nfor label, one in [('find-it', notes.search)]:\n    log(label)\n    mcp.add_tool(one)\n",
            search,
        ),
        ("from notes import search\nother = FastMCP('y', tools=[search])\n", search),
        ("from all_notes import search\nmcp.tool()(search)\n", search),
        (
            "from notes import search\nmcp.tool(name='find-it', description='Finds.')(search)\n",
            "s.find_it beside:notes.py:search Finds.",
        ),
        (
            "from mcp.server.fastmcp.tools import Tool\nimport notes\nmcp.add_tool(Tool.from_function(notes.search, name='find'))\n",
            "s.find beside:notes.py:search Search them.",
        ),
        ("from made import Find\nmcp.add_tool(Find.fn)\n", "s.find beside:notes.py:search Finds."),
        ("from regs import register_all\nregister_all(mcp)\n", search),
    ] {
        let server = format!("{SERVER}{text}");
        let made = "from fastmcp.tools import Tool\nfrom notes import search\nFind = Tool.from_function(search, name='find', description='Finds.')\n";
        let files = [
            ("s.py", server.as_str()),
            ("notes.py", NOTES),
            ("all_notes.py", "from notes import *\n"),
            ("_other.py", "def search(): ...\n"),
            ("made.py", made),
            (
                "regs.py",
                "from mcp.server.fastmcp import FastMCP\nfrom notes import search\ndef register_all(mcp: FastMCP):\n    mcp.tool()(search)\n",
            ),
        ];
        let found = served(&files);
        let of_server: Vec<_> = found.iter().filter(|it| it.starts_with("s.")).collect();
        assert_eq!(of_server, [expected], "{text}");
    }
}

#[test]
fn a_function_is_that_of_the_named_file() {
    let server = format!(
        "{SERVER}from utils import search\nfrom zzz.utils import other\nfrom a0 import search as missing\nmcp.tool()(search)\nmcp.tool()(missing)\n"
    );
    let mut files = vec![
        ("s.py".to_owned(), server),
        ("utils.py".to_owned(), "def search():\n    'Right.'\n".to_owned()),
        ("zzz/utils.py".to_owned(), "def search():\n    'Wrong.'\ndef other(): ...\n".to_owned()),
    ];
    // Files that have everything from one another.
    let stars = (0..16).map(|number| format!("from a{number} import *\n")).collect::<Vec<_>>().concat();
    files.extend((0..16).map(|number| (format!("a{number}.py"), stars.clone())));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(served(&files), ["s.search beside:utils.py:search Right."]);
}

#[test]
fn what_is_given_to_something_else_is_no_tool() {
    for text in [
        "from notes import search\ndef setup(search):\n    mcp.tool()(search)\n",
        "from notes import SEARCH\nmcp.tool()(SEARCH)\n",
        "import os\nmcp.add_tool(os.remove)\n",
        "from notes import search\nmcp.tool(enabled=False)(search)\n",
        "from absent import search\nmcp.tool()(search)\n",
        "import notes\ndef draw(ax):\n    ax.tool(notes.search)\n",
        "import notes\nclass R:\n    def add_tool(self, f): ...\nserver = R()\nserver.add_tool(notes.search)\n",
        "import menu, notes\nmenu.tool('hammer')(notes.search)\n",
        "from notes import search\ndef build():\n    from other import search\n    mcp.tool()(search)\n",
        "import notes\ndef build(items):\n    notes = items\n    mcp.tool()(notes.search)\n",
    ] {
        let server = format!("{SERVER}{text}");
        let found = served(&[("s.py", &server), ("notes.py", "def search(): ...\ndef count(): ...\nSEARCH = 1\n")]);
        assert!(!found.iter().any(|it| it.starts_with("s.")), "{text}\n{found:?}");
    }
    let plain = "from notes import search\ndef f(): ...\nregistry.add_tool(search)\n";
    assert_eq!(served(&[("s.py", plain), ("notes.py", NOTES)]), ["s.f f "]);
}

#[test]
fn functions_are_given_by_names_that_the_function_around_imports() {
    let search = "def search(q: str): ...\ndef private(): ...\n";
    let tools = "from fastmcp.tools import Tool\ndef count(): ...\ndef other(): ...\n\
                 count_tool = Tool.from_function(fn=count, name='count_all')\n";
    let server = "from fastmcp import FastMCP\nfrom tools import count_tool\nTOOLS = [count_tool]\ndef register(mcp):\n    from search import search\n    \
                  mcp.tool(search)\n    for tool in TOOLS:\n        mcp.add_tool(tool.fn, tool.name)\nregister(FastMCP('x'))\n";
    let files = [("server.py", server), ("search.py", search), ("tools/__init__.py", tools)];
    assert_eq!(
        several::served(&files),
        ["server.search beside:search.py:search", "server.count_all beside:tools/__init__.py:count"]
    );
    assert_eq!(reported(&files), [""; 0]);
}

#[test]
fn methods_that_the_top_level_gives_a_server_are_tools() {
    const CLASS: &str = "class Shop:\n    def __init__(self, key=''): ...\n    def search(self, q: str): ...\n    @classmethod\n    def of(cls, q: str): ...\n    \
                         @staticmethod\n    def count(q: str): ...\n    def private(self): ...\nshop = Shop('x')\n";
    let text = format!(
        "{SERVER}{CLASS}mcp.tool(shop.search)\nmcp.add_tool(Shop.of)\nmcp.tool(name='total')(Shop.count)\nmcp.tool(Shop.private)\n"
    );
    assert_eq!(several::served(&[("s.py", &text)]), ["s.search shop.search", "s.of Shop.of", "s.total Shop.count"]);
    let found = super::file(&text);
    for function in &found.functions {
        assert_eq!(function.input_schema.read()["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["q"]);
    }
    let shown = super::names(&found);
    assert_eq!(shown, ["search", "of", "total"], "one that needs an instance has none");
    let needy = text.replace("key=''", "key");
    assert_eq!(super::names(&super::file(&needy)), ["search", "of", "total"], "they need no instance");
    let decorated = format!(
        "{SERVER}class Shop:\n    def __init__(self, key): ...\n    @mcp.tool\n    @staticmethod\n    def count(q: str): ...\n"
    );
    let found = super::file(&decorated);
    assert_eq!((super::names(&found), found.warnings.len()), (vec!["count"], 0));
    let found = super::file(&format!("{decorated}    @mcp.tool\n    def search(self, q: str): ...\n"));
    assert_eq!((super::names(&found), found.warnings.len()), (vec!["count"], 1), "it says which class needs arguments");
}

#[test]
fn what_cannot_be_told_of_what_a_server_is_given_is_reported() {
    for (calls, given) in [
        ("TOOLS = {}\nTOOLS['x'] = load()\nfor name, one in TOOLS.items():\n    mcp.add_tool(one, name)\n", "one"),
        ("for tool in registry.all():\n    mcp.tool(tool)\n", "tool"),
        ("def add(function):\n    mcp.tool()(function)\n    return function\n", "function"),
        ("for name in NAMES:\n    mcp.tool(getattr(module, name))\n", "getattr(module, name)"),
        ("mcp.tool()(lambda text: text)\n", "lambda text: text"),
    ] {
        let files = [("server.py", format!("{SERVER}@mcp.tool()\ndef own(): ...\n{calls}"))];
        let files = [(files[0].0, files[0].1.as_str())];
        assert_eq!(several::served(&files), ["server.own own"], "{calls}");
        let expected = format!(
            "server inner-tools: the server is given `{given}`, which cannot be resolved by reading the file, so it is not served"
        );
        assert_eq!(reported(&files), [expected]);
    }
    let known = "def search(): ...\nfor tool in (search,):\n    mcp.tool()(tool)\n@mcp.tool('x')\ndef own(): ...\n";
    assert_eq!(reported(&[("server.py", &format!("{SERVER}{known}"))]), [""; 0]);
}
