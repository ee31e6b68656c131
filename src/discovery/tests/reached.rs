//! Functions that are called with what they need to make tools.

use super::several::{SERVER, reported, served, served_below};

#[test]
fn makers_that_the_file_gives_what_they_need_are_called() {
    const MORE: &str = "def register(mcp, client):\n    @mcp.tool()\n    def g(a: int): ...\n";
    const CLASS: &str =
        "class Tools:\n    def __init__(self, mcp, client):\n        @mcp.tool()\n        def g(a: int): ...\n";
    const METHOD: &str = "class Tools:\n    def __init__(self, client): ...\n    def add_to(self, mcp):\n        @mcp.tool()\n        def g(a: int): ...\n";
    const STATIC: &str = "class Tools:\n    @staticmethod\n    def register(mcp, client):\n        @mcp.tool()\n        def g(a: int): ...\n";
    let in_class = |text: &str| text.replace("register", "Tools").replace("Tools.Tools", "Tools.register");
    let top = format!("{SERVER}from tools import register\nregister(mcp, object())\n");
    let factory =
        format!("{SERVER}def build():\n    from tools import register\n    register(FastMCP('y'), object())\n");
    let program = "from mcp.server.fastmcp import FastMCP\nfrom tools import register\n\
                   def main():\n    mcp = FastMCP('x')\n    register(mcp, object())\n    mcp.run()\n";
    let method = top.replace("register(mcp, object())", "register(object()).add_to(mcp)");
    let by_class = top.replace("register(mcp,", "register.register(mcp,");
    for (server, helper, symbol) in [
        (top.clone(), MORE, "made:>register:2:g"),
        (factory, MORE, "made:server.py/build>register:2:g"),
        (program.to_owned(), MORE, "made:server.py/main>register:2:g"),
        (in_class(&top), CLASS, "made:>Tools.__init__:3:g"),
        (in_class(&method), METHOD, "made:>Tools.add_to:4:g"),
        (in_class(&by_class), STATIC, "made:>Tools.register:4:g"),
    ] {
        let files = [("server.py", server.as_str()), ("tools.py", helper)];
        assert_eq!(served(&files), [format!("server.g beside:tools.py:{symbol}")], "{server}");
        assert_eq!(reported(&files), [""; 0], "{server}");
        // In one file.
        let server = server.replace("from tools import register\n", "").replace("from tools import Tools\n", "");
        let (imports, rest) = server.split_once('\n').unwrap();
        let whole = format!("{imports}\n{helper}{rest}").replace("    from tools import register\n", "");
        let found = served(&[("server.py", &whole)]);
        let [tool] = &found[..] else { panic!("{whole}\n{found:?}") };
        assert!(tool.starts_with("server.g made:"), "{tool}");
    }
}

#[test]
fn makers_are_reached_from_the_program_and_from_packages() {
    const MAKER: &str = "from fastmcp import FastMCP\ndef run(root):\n    mcp = FastMCP('x')\n    @mcp.tool()\n    def g(a: int): ...\n    return mcp\n";
    let program = format!("{MAKER}if __name__ == '__main__':\n    args = parse()\n    run(args.root).run()\n");
    assert_eq!(served(&[("server.py", &program)]), ["server.g made:server.py/__main__>run:4:g"]);
    let starts = program.replace("args = parse()", "pool.start()");
    assert!(served(&[("server.py", &starts)]).is_empty(), "it also starts something");
    let named = format!("{MAKER}def main():\n    run('x').run()\nif __name__ == '__main__':\n    main()\n");
    assert_eq!(served(&[("server.py", &named)]), ["server.g made:server.py/main>run:4:g"]);
    for other in [
        program.replace("'__main__'", "'__mp_main__'"),
        format!("{program}if __name__ == '__main__':\n    wipe()\n"),
        program.replace("if __name__ == '__main__':\n    ", "try:\n  if __name__ == '__main__':\n    ")
            + "except OSError: ...\n",
    ] {
        assert!(served(&[("server.py", &other)]).is_empty(), "{other}");
    }
    let of_helper = [
        ("cli.py", "import server\ndef main(): ...\nif __name__ == '__main__':\n    main()\n"),
        ("server.py", program.as_str()),
    ];
    assert_eq!(served(&of_helper), ["server.g made:server.py/__main__>run:4:g"], "not by a file that does not call it");
    for (file, text) in [
        (
            "pkg/cli.py",
            "from server import run\ndef main():\n    run('/data')\nif __name__ == '__main__':\n    main()\n",
        ),
        ("pkg/__main__.py", "from .server import run\ndef main():\n    run('/data').run()\nmain()\n"),
        (
            "pkg/__init__.py",
            "from . import server\ndef main():\n    server.run('/data')\n__all__ = ['main', 'server']\n",
        ),
    ] {
        let found = served_below("pkg", &[(file, text), ("pkg/server.py", MAKER)]);
        let [tool] = &found[..] else { panic!("{file}: {found:?}") };
        let pack = if file == "pkg/cli.py" { "cli.g " } else { "pkg.g " };
        assert!(tool.ends_with(">run:4:g") && tool.starts_with(pack), "{tool}");
    }
}

#[test]
fn makers_are_reached_through_helpers() {
    let more = |name: &str| format!("def register(mcp, client):\n    @mcp.tool()\n    def {name}(a: int): ...\n");
    let (a, b, c) = (more("a"), more("b"), more("c"));
    let all = "from .a import register as register_a\nfrom . import b\nfrom ._c import *\n\
                   def register_all(mcp, client):\n    register_a(mcp, client)\n    b.register(mcp, client)\n";
    let below = [("tools/__init__.py", all), ("tools/a.py", &a), ("tools/b.py", &b), ("tools/_c.py", &c)];
    let with = |files: &[(&'static str, &'static str)]| {
        let all: Vec<_> = files.iter().copied().chain(below).collect();
        (served(&all), reported(&all))
    };
    let build = "from mcp.server.fastmcp import FastMCP\nfrom tools import register_all\n\
                   def build(name='x'):\n    mcp = FastMCP(name)\n    register_all(mcp, object())\n    return mcp\n\
                 def also():\n    return build('y')\n";
    let run = "from server import build\ndef main():\n    mcp = build()\n    mcp.run()\n";
    let (served, warnings) = with(&[("server.py", build), ("run.py", run)]);
    let expected = |place: &str| {
        let of = |name: &str| format!("server.{name} beside:tools/{name}.py:made:{place}>register:2:{name}");
        ["a", "b"].map(of).to_vec()
    };
    assert_eq!(served, expected("server.py/build"));
    let [unreached] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(unreached.starts_with("server inner-tools: tools/_c.py, line 1"), "{unreached}");
}

#[test]
fn what_cannot_be_called_or_nothing_calls_is_not_called() {
    const MORE: &str = "def register(mcp, client):\n    @mcp.tool()\n    def g(a: int): ...\n";
    for calls in [
        "if __name__ == '__main__':\n    pool.start()\n    register(mcp, object())\n",
        "async def main():\n    register(mcp, object())\n    yield\n",
        "def main(port):\n    register(mcp, object())\n",
        "def main():\n    register(mcp, object())\n    other.run()\n",
        "@wrapped\ndef main():\n    register(mcp, object())\n",
        "",
    ] {
        let server = format!("{SERVER}from tools import register\n{calls}");
        let files = [("server.py", server.as_str()), ("tools.py", MORE)];
        assert!(served(&files).is_empty(), "{calls}");
        let warnings = reported(&files);
        assert!(
            matches!(&warnings[..], [one] if one.starts_with("server inner-tools: tools.py, line 1")),
            "{warnings:?}"
        );
    }
    let both = MORE.replace("tool()\n", "tool()\n    def h(): ...\n    @mcp.tool(name=client.name)\n");
    let server = format!("{SERVER}from tools import register\nregister(mcp, object())\n");
    let files = [("server.py", server.as_str()), ("tools.py", both.as_str())];
    assert_eq!(served(&files), ["server.h beside:tools.py:made:>register:2:h"]);
    assert_eq!(
        reported(&files),
        ["server inner-tools: tools.py, line 1: tools that `register` gives computed names are not served"]
    );
    // Its tools have computed names, one for each time it is called.
    let computed = MORE.replace("tool()", "tool(name=client.name)");
    let server = format!("{SERVER}from tools import register\nfor one in clients():\n    register(mcp, one)\n");
    assert!(served(&[("server.py", &server), ("tools.py", &computed)]).is_empty());
}

#[test]
fn a_tool_file_that_waits_is_given_what_it_needs_by_another() {
    let build = "from fastmcp import FastMCP\ndef build(roots):\n    mcp = FastMCP('x')\n    @mcp.tool\n    def f(): ...\n    return mcp\n";
    let app = "from server import build\nmcp = build(['a'])\napp = mcp.http_app()\n";
    let files = [("server.py", build), ("app.py", app)];
    assert_eq!(served(&files), ["app.f beside:server.py:made:>build:4:f"]);
    assert!(reported(&files).is_empty(), "{:?}", reported(&files));
    // An agent's tools are its own.
    let agent = "from langchain_core.tools import tool\ndef build(client):\n    @tool\n    def f() -> str:\n        'Says.'\n    return [f]\n";
    let asks = "from tools import build\nTOOLS = build(object())\ndef ask(): ...\n";
    assert_eq!(served(&[("agent.py", asks), ("tools.py", agent)]), ["agent.ask ask"]);
}

const WAITING: &str = "def register(mcp, client):\n    @mcp.tool()\n    def g(a: int): ...\n";

/// What the worker calls for the tool of `WAITING`.
fn way(server: &str) -> Option<String> {
    let found = served(&[
        ("s.py", server),
        ("tools.py", WAITING),
        ("legacy.py", "from tools import register\nregister(1, 2)\n"),
    ]);
    let symbol = found.iter().find_map(|it| it.strip_prefix("s.g beside:tools.py:made:"))?;
    Some(symbol.split('>').next()?.to_owned())
}

#[test]
fn the_function_that_the_program_calls_is_called() {
    let head = "from fastmcp import FastMCP\nfrom tools import register\n";
    let build = "def build():\n    mcp = FastMCP('x')\n    register(mcp, connect())\n    return mcp\n";
    let demo = "def demo():\n    register(FastMCP('demo'), 'x')\n";
    let guard = "if __name__ == '__main__':\n    build().run()\n";
    assert_eq!(way(&format!("{head}{demo}{build}{guard}")).as_deref(), Some("s.py/build"));
    let private = demo.replace("demo()", "_demo()");
    assert_eq!(way(&format!("{head}{private}{build}")).as_deref(), Some("s.py/build"));
    assert_eq!(way(&format!("{head}{private}")).as_deref(), Some("s.py/_demo"));
    // What is imported within a function has not run.
    let within = "def old():\n    import legacy\n";
    assert_eq!(way(&format!("{head}{within}{build}")).as_deref(), Some("s.py/build"));
    assert_eq!(way(&format!("{head}import legacy\n{build}")).as_deref(), Some(""));
}

#[test]
fn what_a_star_imports_is_called() {
    let head = "from fastmcp import FastMCP\nfrom tools import *\nmcp = FastMCP('x')\n";
    let build = "def build():\n    register(mcp, connect())\n";
    assert_eq!(way(&format!("{head}{build}")).as_deref(), Some("s.py/build"));
}

#[test]
fn methods_of_one_name_make_no_file_a_server() {
    let plain = "import lib\nclass E(ValueError):\n    def __init__(self):\n        super().__init__('x')\n    def setup(self): ...\n\
                 def search(q): ...\ne = E()\ne.setup(1)\n";
    for name in ["__init__", "setup"] {
        let lib = format!("class S:\n    def {name}(self, client):\n        @self.mcp.tool()\n        def a(): ...\n");
        assert!(served(&[("plain.py", plain), ("lib.py", &lib)]).contains(&"plain.search search".to_owned()), "{name}");
    }
}

#[test]
fn modules_of_one_name_are_not_mistaken() {
    let other = WAITING.replace("def g", "def delete_all");
    let files = [
        (
            "s.py",
            "from mcp.server.fastmcp import FastMCP\nfrom a.tools import register\nimport b.tools\nmcp = FastMCP('x')\nregister(mcp, 1)\n",
        ),
        ("a/tools.py", WAITING),
        ("b/tools.py", &other),
    ];
    assert_eq!(served(&files), ["s.g beside:a/tools.py:made:>register:2:g"]);
}

#[test]
fn a_class_gives_a_server_its_own_methods() {
    let class = "class Stacks:\n    def __init__(self, mcp, write=False):\n        mcp.tool(name='manage_stacks')(self.manage)\n        \
                 mcp.add_tool(self.count)\n        for tool in (self.a, self.b):\n            mcp.tool()(tool)\n    async def manage(self, name: str) -> str: ...\n    \
                 def count(self): ...\n    def a(self): ...\n    def b(self): ...\n    def c(self): ...\n";
    let server = "import argparse\nfrom mcp.server.fastmcp import FastMCP\nfrom stacks import Stacks\ndef create():\n    return FastMCP('x')\n\
                  def main():\n    given = argparse.ArgumentParser().parse_args()\n    mcp = create()\n    Stacks(mcp, given.write)\n    mcp.run()\n";
    let files = [("server.py", server), ("stacks.py", class)];
    let place = |name: &str, line: u8, method: &str| {
        format!("server.{name} beside:stacks.py:made:server.py/main>Stacks.__init__:{line}:.{method}")
    };
    let expected =
        [place("manage_stacks", 7, "manage"), place("count", 8, "count"), place("a", 9, "a"), place("b", 10, "b")];
    assert_eq!(served(&files), expected);
    assert_eq!(reported(&files), [""; 0]);
    let method = class.replace("__init__(self, mcp, write=False)", "register(self, mcp)");
    for calls in [
        "try:\n    stacks = Stacks()\n    stacks.register(mcp)\nexcept Exception as e:\n    raise\n",
        "Stacks().register(mcp)\n",
    ] {
        let server = format!("{SERVER}from stacks import Stacks\n{calls}");
        let found = served(&[("server.py", &server), ("stacks.py", &method)]);
        assert_eq!(found[0], "server.manage_stacks beside:stacks.py:made:>Stacks.register:7:.manage", "{calls}");
        assert_eq!(found.len(), 4);
    }
    // By itself, with an agent.
    let own = "from camel.toolkits import BaseToolkit, FunctionTool\nfrom camel.utils import MCPServer\n@MCPServer()\nclass Papers(BaseToolkit):\n    \
               def search(self, q: str): ...\n    def get_tools(self):\n        return [FunctionTool(self.search)]\n";
    assert_eq!(served(&[("papers.py", own)]), ["papers.search made:Papers.get_tools:5:.search"]);
}

#[test]
fn a_package_needs_no_init_file() {
    let server = "from mcp.server.fastmcp import FastMCP\nfrom shop.sheets import write\nmcp = FastMCP('x')\nmcp.tool(name='put')(write)\n\
                  @mcp.tool()\ndef own(): ...\n";
    let sheets = "from shop.units import unit\ndef write(text: str): ...\ndef other(): ...\n";
    let files = [("shop/server.py", server), ("shop/sheets.py", sheets), ("shop/units.py", "def unit(): ...\n")];
    let mut found = served_below("shop", &files);
    found.sort();
    assert_eq!(found, ["server.own own", "server.put beside:sheets.py:write"]);
}

#[test]
fn a_folder_called_like_a_known_package_is_none_of_it() {
    let tool = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\ndef g(): ...\n";
    let types = "def convert(a: int): ...\n";
    let files =
        [("mcp/server.py", tool), ("mcp/types.py", types), ("mcp/a.py", "from mcp.types import Tool\ndef f(): ...\n")];
    let mut found = served_below("mcp", &files);
    found.sort();
    assert_eq!(found, ["a.f f", "server.g g", "types.convert convert"]);
}
