//! Tools that a function makes when it is called.

use super::{file, names};
use crate::discovery::ToolFile;

/// What is served, and what the worker knows it by, without the line in that.
fn served(found: &ToolFile) -> Vec<(&str, String)> {
    let symbol = |text: &str| {
        let parts = text.split(':').filter(|part| part.parse::<usize>().is_err());
        parts.collect::<Vec<_>>().join(":")
    };
    found.functions.iter().map(|it| (&*it.name, symbol(it.symbol.as_deref().unwrap_or_default()))).collect()
}

#[test]
fn makers_that_need_a_server_at_most_are_called() {
    let tool = "@mcp.tool()\n    def f(a: int) -> int:\n        'Says.'\n";
    for (text, symbol) in [
        (format!("def make(name='x', *, port: int = 1):\n    mcp = FastMCP(name)\n    {tool}    return mcp\n"), "made:make:f"),
        (format!("@cache\ndef make():\n    if True:\n        mcp = FastMCP()\n    {tool}    return mcp\n"), "made:make:f"),
        (format!("def register(mcp: FastMCP, debug=False):\n    {tool}"), "made:register:f"),
        (format!("def register(mcp, client):\n    {tool}register(FastMCP('x'), connect())\n"), "made:register:f"),
        (format!("def main():\n    mcp = FastMCP('x')\n    {tool}    mcp.run()\n"), "made:main:f"),
        (format!("import asyncio\ndef main():\n    mcp = FastMCP('x')\n    {tool}    asyncio.run(mcp.run_async())\n"), "made:main:f"),
        (format!("def new(): ...\ndef main():\n    mcp = new()\n    {tool}    mcp.run()\n"), "made:main:f"),
        (format!("def main():\n    from own import a\n    mcp = own.create_mcp(a)\n    {tool}    mcp.run()\n"), "made:main:f"),
        (
            "class S:\n    def __init__(self, name='x'):\n        self.set()\n    def set(self):\n        @self.mcp.tool\n        \
             def f(a: int) -> int:\n            'Says.'\n"
                .to_owned(),
            "made:S.set:f",
        ),
        ("def tools():\n    @tool('f')\n    def f(a: int) -> int:\n        'Says.'\n    return [f]\n".to_owned(), "made:tools:f"),
    ] {
        let imports = "from fastmcp import FastMCP\nfrom langchain_core.tools import tool\nfrom functools import cache\n";
        let found = file(&format!("{imports}{text}def helper(): ...\n"));
        assert_eq!((served(&found), found.warnings.len()), (vec![("f", symbol.to_owned())], 0), "{text}\n{found:?}");
        let function = &found.functions[0];
        assert_eq!(function.summary.as_deref(), Some("Says."));
        assert!(function.input_schema.raw().get().contains(r#""a":{"type":"integer"}"#), "{function:?}");
    }
}

#[test]
fn what_is_given_to_their_decorators_counts() {
    let found = file(
        "from mcp.server.fastmcp import FastMCP, Context\ndef make():\n    mcp = FastMCP()\n    @mcp.tool(name='get-x', description='Gets.')\n    \
         def f(a: int, ctx: Context): ...\n    @mcp.tool()\n    async def g(): ...\n    @mcp.resource('x://y')\n    def r(): ...\n",
    );
    assert_eq!(served(&found), [("get_x", "made:make:f".to_owned()), ("g", "made:make:g".to_owned())]);
    assert_eq!(found.functions[0].summary.as_deref(), Some("Gets."));
    assert!(!found.functions[0].input_schema.raw().get().contains("ctx"));
}

#[test]
fn what_a_base_class_makes_is_served_where_the_file_makes_a_derived_one() {
    let base = "class Base:\n    def __init__(self, mcp, key):\n        mcp.tool()(self.find)\n        @mcp.tool\n        def f(): ...\n    \
                def find(self, x: int): ...\n";
    let of = |kid: &str| file(&format!("from fastmcp import FastMCP\nmcp = FastMCP('x')\n{base}{kid}Kid(mcp, 1)\n"));
    let found = of("class Middle(Base):\n    pass\nclass Kid(Middle):\n    def other(self): ...\n");
    assert_eq!(
        served(&found),
        [("f", "made:Base.__init__:f".to_owned()), ("find", "made:Base.__init__:.find".to_owned())]
    );
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    let mixed = of("class Mixin:\n    def more(self): ...\nclass Kid(Base, Mixin): ...\n");
    assert_eq!(names(&mixed), ["f", "find"]);
    for kid in [
        "class Kid(Base):\n    def find(self, x: int): ...\n",
        "class Kid(Base):\n    def __init__(self, mcp, key): ...\n",
        "class Kid:\n    def __init__(self, mcp, key): ...\n",
        "class Mixin:\n    def find(self, x: int): ...\nclass Kid(Mixin, Base): ...\n",
    ] {
        let found = of(kid);
        assert!(found.functions.is_empty() && found.warnings[0].rule == "inner-tools", "{kid}\n{found:?}");
    }
}

#[test]
fn a_server_is_known_by_its_annotation() {
    let found = file(
        "from fastmcp import FastMCP\nfrom fastmcp.tools import Tool\nmcp = FastMCP('x')\nclass A:\n    def __init__(self, m: FastMCP):\n        \
         m.tool(self.find)\n    def find(self, x: int): ...\n    def top(self): ...\ndef count(): ...\ndef add(m: 'FastMCP'):\n    m.tool()(count)\n\
         a = A(mcp)\nadd(mcp)\nmcp.add_tool(Tool.from_function(a.top, name='most'))\n",
    );
    let expected = [("count", ""), ("find", "made:A.__init__:.find"), ("most", "a.top")];
    let mut served = served(&found);
    served.sort();
    assert_eq!(served, expected.map(|(name, symbol)| (name, symbol.to_owned())), "{:?}", found.warnings);
}

#[test]
fn methods_that_an_agent_is_given_are_tools() {
    let of = |agent: &str| {
        file(&format!(
            "from agno.agent import Agent\nclass Bot:\n    def __init__(self, name='x'):\n        self.agent = {agent}\n    \
             def find(self, x: int, session_state): ...\n    def run(self): ...\n"
        ))
    };
    let found = of("Agent(tools=[self.find])");
    assert_eq!(served(&found), [("find", "made:Bot.__init__:.find".to_owned())]);
    assert!(!found.functions[0].input_schema.raw().get().contains("self"), "{found:?}");
    assert!(of("Thing(tools=[self.find])").functions.is_empty());
}

#[test]
fn makers_that_need_more_are_reported() {
    let tool = "@mcp.tool()\n    def f(): ...\n";
    for (text, name) in [
        (format!("def register(mcp, client):\n    {tool}"), "register"),
        (format!("def register(client):\n    {tool}"), "register"),
        (format!("async def make():\n    {tool}    yield mcp\n"), "make"),
        (format!("def make():\n    {tool}    yield mcp\n"), "make"),
        (format!("def main():\n    mcp = FastMCP()\n    {tool}    asyncio.run(thing.work())\n"), "main"),
        (format!("def main():\n    {tool}    loop = other.Loop()\n    loop.run()\n"), "main"),
        (format!("async def main():\n    {tool}    async with open():\n        await other.run()\n"), "main"),
        (format!("def main():\n    mcp = FastMCP()\n    {tool}    try:\n        mcp.run()\n    finally:\n        end()\n"), "main"),
        (format!("def main():\n    mcp = FastMCP()\n    {tool}    try:\n        mcp.run()\n    except:\n        end()\n"), "main"),
        (format!("def main():\n    {tool}    other.run()\n"), "main"),
        (format!("def make():\n    {tool}del make\n"), "make"),
        (format!("def register(*, mcp):\n    {tool}"), "register"),
        (format!("@wrapped\ndef make():\n    {tool}"), "make"),
        (format!("def main():\n    mcp = FastMCP()\n    {tool}    with open():\n        mcp.run()\n"), "main"),
        (format!("def make():\n    {tool}    run(['ls'])\n"), "make"),
        (format!("def register(mcp, client=None):\n    {tool}def main():\n    register(FastMCP(), client=3)\n"), "register"),
        ("class S:\n    @staticmethod\n    def setup(mcp):\n        @mcp.tool\n        def f(): ...\n".to_owned(), "setup"),
        (
            "class S:\n    def __init__(self, key): ...\n    def setup(self):\n        @self.mcp.tool\n        def f(): ...\n        \
             @self.mcp.tool\n        def g(): ...\n"
                .to_owned(),
            "setup",
        ),
        ("class S(Base):\n    def setup(self):\n        @self.mcp.tool\n        def f(): ...\n".to_owned(), "setup"),
        ("class A:\n    class S:\n        def setup(self):\n            @self.mcp.tool\n            def f(): ...\n".to_owned(), "setup"),
    ] {
        let found = file(&format!("from fastmcp import FastMCP\nfrom subprocess import run\n{text}def helper(): ...\n"));
        assert!(found.functions.is_empty(), "{text}");
        let [warning] = &found.warnings[..] else { panic!("{text}\n{:?}", found.warnings) };
        assert!(warning.rule == "inner-tools" && warning.reason.what.contains(name), "{warning:?}");
    }
    let found = file("async def serve():\n    if True:\n        @server.call_tool()\n        async def f(): ...\n");
    let [warning] = &found.warnings[..] else { panic!("{:?}", found.warnings) };
    assert_eq!((&*warning.rule, warning.line, found.functions.len()), ("low-level-server", 4, 0));
}

#[test]
fn two_tools_of_one_name_differ_by_their_lines() {
    let found = file(
        "def make():\n    mcp = FastMCP()\n    @mcp.tool(name='a')\n    def f(): ...\n    @mcp.tool(name='b')\n    def f(): ...\n",
    );
    let symbols: Vec<_> = found.functions.iter().map(|it| it.symbol.as_deref().unwrap()).collect();
    assert_eq!(symbols, ["made:make:3:f", "made:make:5:f"]);
}

#[test]
fn functions_within_tools_and_plain_functions_are_no_tools() {
    let both = file(
        "from fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool\ndef a():\n    agent = Agent()\n    @agent.tool\n    def c(): ...\n",
    );
    assert_eq!((served(&both), both.warnings.len()), (vec![("a", String::new())], 0));
    assert_eq!(served(&file("def a():\n    @cache\n    def b(): ...\n")), [("a", String::new())]);
}

#[test]
fn functions_that_run_their_server_or_wait_for_it_are_called() {
    let tool = "@mcp.tool()\n    def f(): ...\n";
    for text in [
        format!("async def main():\n    {tool}"),
        format!(
            "async def main():\n    mcp = FastMCP()\n    {tool}    async with open():\n        await mcp.run_async()\n"
        ),
        format!(
            "def main():\n    mcp = FastMCP()\n    {tool}    try:\n        mcp.run()\n    except KeyboardInterrupt:\n        end()\n"
        ),
        format!(
            "def main():\n    mcp = FastMCP()\n    {tool}    if mode == 'sse':\n        uvicorn.run(mcp)\n    else:\n        mcp.run()\n"
        ),
        format!("def main():\n    {tool}    loop = uvicorn.Server()\n    loop.run()\n"),
        format!("def main():\n    {tool}    async def run(): ...\n    anyio.run(run)\n"),
        format!("def main():\n    {tool}    sys.exit(asyncio.run(serve(1)))\n"),
        format!("def main(path: str | None):\n    {tool}"),
        format!("def main(path: Optional['Path'], name: Union[int, None]):\n    {tool}"),
        format!("@click.command('x')\n@click.option('--a', default=1)\ndef main(a):\n    {tool}"),
        format!(
            "@click.command()\n@click.option('--a', required=True)\n@click.argument('b')\ndef main(a, b):\n    {tool}"
        ),
    ] {
        let found = file(&format!(
            "import asyncio, anyio, click, sys, uvicorn\nfrom fastmcp import FastMCP\n{text}def helper(): ...\n"
        ));
        assert_eq!(served(&found), [("f", "made:main:f".to_owned())], "{text}\n{:?}", found.warnings);
    }
}
