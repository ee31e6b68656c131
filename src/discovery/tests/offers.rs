//! Functions beside the tools of a framework's file that are not tools.

use serde_json::json;

use super::{file, names};
use crate::discovery::Function;

#[test]
fn what_frameworks_call_at_their_own_moments_is_no_tool() {
    for hook in [
        "from pydantic_ai import Agent\nagent = Agent('x')\n@agent.system_prompt\n",
        "from pydantic_ai import Agent\nagent = Agent('x')\n@agent.output_validator()\nasync ",
        "from fastapi import FastAPI\napp = FastAPI()\n@app.exception_handler(ValueError)\n",
        "import pytest\n@pytest.fixture\n",
        "from agents import input_guardrail\n@input_guardrail\n",
        "import asyncio\nasyncio.run(hook())\nasync ",
    ] {
        let found = file(&format!("{hook}def hook(ctx): ...\ndef ask(text: str): ...\n"));
        assert_eq!(names(&found), ["ask"], "{hook}");
    }
    let example = file("import asyncio\nasync def ask(text: str): ...\nasyncio.run(ask('x'))\n");
    assert_eq!(names(&example), ["ask"]);
    let own = file("import registry\n@registry.middleware\ndef hook(): ...\ndef ask(): ...\n");
    assert_eq!(names(&own), ["hook", "ask"], "no framework");
}

#[test]
fn handlers_that_a_server_offers_have_the_names_of_their_operations() {
    let found = file(
        "from fastapi import Depends, FastAPI\nfrom fastmcp import FastMCP\napp = FastAPI()\ndef connect(): ...\n\
         @app.get('/items', operation_id='list_items')\ndef read(db=Depends(connect)): ...\n@app.post('/items')\ndef add(name: str): ...\n\
         mcp = FastMCP.from_fastapi(app=app)\n",
    );
    assert_eq!(names(&found), ["list_items", "add"]);
    let both = "from fastapi import FastAPI\nfrom fastmcp import FastMCP\napp, mcp = FastAPI(), FastMCP('x')\n\
                @mcp.tool\n@app.get('/x', operation_id='list_x')\ndef read(): ...\n";
    assert_eq!(names(&file(both)), ["read"]);
}

#[test]
fn what_a_file_hands_to_something_else_is_no_tool() {
    for handed in [
        "from fastapi import FastAPI\napp = FastAPI()\n@app.get('/x')\n",
        "from flask import Flask\napp = Flask('x')\n@app.route('/x', methods=['POST'])\n",
        "from starlette.routing import Route\nroutes = [Route('/', hook)]\n",
        "from fastapi import FastAPI\nfrom contextlib import asynccontextmanager\n@asynccontextmanager\nasync ",
        "from fastapi import FastAPI\napp = FastAPI(lifespan=hook)\n",
        "from aiohttp import web\napp.router.add_route('GET', '/x', hook)\n",
        "from google.adk.agents import Agent\na = Agent(model='m', name='a', tools=[ask], before_agent_callback=hook)\n",
        "from agents import Agent\na = Agent('a', instructions=hook, output_guardrails=[hook])\n",
        "from langgraph.graph import StateGraph\ng = StateGraph(dict)\ng.add_node('x', hook)\n",
        "from mcp import ClientSession\ndef _open(r, w):\n    return ClientSession(r, w, sampling_callback=hook)\n",
        "from fastmcp import Client\nclient = Client('x', log_handler=hook)\n",
    ] {
        let found = file(&format!("{handed}def hook(ctx): ...\ndef ask(text: str): ...\n"));
        assert_eq!(names(&found), ["ask"], "{handed}");
    }
    assert_eq!(names(&file("import boto3\ndef lambda_handler(event, context): ...\ndef ask(): ...\n")), ["ask"]);
    let offered = "from fastapi import FastAPI\nfrom fastapi_mcp import FastApiMCP\napp = FastAPI()\n@app.get('/x')\ndef x(): ...\n";
    assert_eq!(names(&file(&format!("{offered}FastApiMCP(app).mount_http()\n"))), ["x"]);
    assert_eq!(names(&file(offered)), [""; 0]);
}

#[test]
fn what_only_looks_handed_over_is_a_tool() {
    for text in [
        "import requests\n@bot.get('/key')\n",
        "from fastapi import FastAPI\n@cached.get('key')\n",
        "import requests\ndef _listing(x): return resolve('/data', x)\n",
        "import fastapi\ndef _listing(x): return app.add_route('/data', x)\n",
        "import fastapi\ndef _listing():\n    x = 1\n    app.add_route('/data', x)\n",
        "import requests\nclient.post('/x', x)\n",
        "from smolagents import CodeAgent\nagent = CodeAgent(model=m, functions=[x])\n",
        "import flask\nsettings = dict(lifespan=x, handler=x)\n",
    ] {
        let found = file(&format!("{text}def x(): ...\n"));
        assert_eq!(names(&found), ["x"], "{text}");
    }
    assert_eq!(names(&file("import boto3\ndef lambda_handler(name): ...\n")), ["lambda_handler"]);
}

#[test]
fn a_decorator_of_the_file_may_pass_functions_on_to_the_server() {
    const SERVER: &str = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n";
    for decorator in [
        "def tool(hints=None):\n    def decorator(func):\n        return mcp.tool(annotations=hints)(func)\n    return decorator\n@tool()\n",
        "def tool(func):\n    return mcp.tool()(func)\n@tool\n",
        "def tool(func):\n    mcp.add_tool(func, name=func.__name__)\n    return func\n@tool\n",
    ] {
        let found = file(&format!("{SERVER}{decorator}def search(q: str): ...\ndef helper(): ...\n"));
        assert_eq!(names(&found), ["search"], "{decorator}");
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    }
    let named =
        "def tool(**said):\n    def decorator(func):\n        return mcp.tool(**said)(func)\n    return decorator\n";
    let found = file(&format!("{SERVER}{named}@tool(name='find', description='Finds.')\ndef search(q: str): ...\n"));
    assert_eq!((names(&found), found.functions[0].description.as_deref()), (vec!["find"], Some("Finds.")));
    let group = file(&format!("{SERVER}{named}@tool('group')\ndef search(q: str): ...\n"));
    assert_eq!(names(&group), ["search"], "the text may be anything");
    let kept = named.replace("**said):\n", "name=None):\n").replace("mcp.tool(**said)", "mcp.tool()");
    assert_eq!(
        names(&file(&format!("{SERVER}{kept}@tool(name='group')\ndef search(q: str): ...\n"))),
        ["search"],
        "not passed on"
    );
    let passed = kept.replace("mcp.tool()", "mcp.tool(name)");
    assert_eq!(names(&file(&format!("{SERVER}{passed}@tool(name='find')\ndef search(q: str): ...\n"))), ["find"]);
    let hints = kept.replace("name=None", "hints=None").replace("mcp.tool()", "mcp.tool(annotations=hints)");
    let found = file(&format!("{SERVER}{hints}@tool(hints={{'title': 'Find'}})\ndef search(q: str): ...\n"));
    assert_eq!(found.functions[0].hints.as_ref().unwrap().title.as_deref(), Some("Find"));
    let fixed = kept.replace("mcp.tool()", "mcp.tool(name='fixed')");
    assert_eq!(names(&file(&format!("{SERVER}{fixed}@tool()\ndef search(q: str): ...\n"))), ["fixed"]);
    let computed = kept.replace("mcp.tool()", "mcp.tool(name=f'my_{func}')");
    assert_eq!(names(&file(&format!("{SERVER}{computed}@tool()\ndef search(q: str): ...\n"))), [""; 0]);
    let other = "def tool(callback):\n    def decorator(func):\n        mcp.tool()(callback)\n        return func\n    return decorator\n";
    assert_eq!(
        names(&file(&format!("{SERVER}{other}@tool(print)\ndef helper(q: str): ...\n"))),
        [""; 0],
        "another function"
    );
    let other = "def logged(func):\n    print(func)\n    return func\n@logged\n@mcp.tool()\ndef a(): ...\n@logged\ndef b(): ...\n";
    assert_eq!(names(&file(&format!("{SERVER}{other}"))), ["a"]);
}

#[test]
fn what_frameworks_give_may_be_imported_where_it_is_used() {
    let within = "def register(mcp):\n    from fastmcp import Context\n    @mcp.tool()\n    def find(q: str, ctx: Context): ...\n\
                  from fastmcp import FastMCP\nmcp = FastMCP('x')\nregister(mcp)\n";
    let schema = file(within).functions[0].input_schema.read();
    assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["q"]);
    let own = "class Context: ...\ndef find(q: str, ctx: Context): ...\n";
    assert_eq!(file(own).functions[0].input_schema.read()["properties"].as_object().unwrap().len(), 2);
}

#[test]
fn functions_beside_classes_of_tools_are_none() {
    let needs = "from langchain_core.tools import BaseTool\nclass Search(BaseTool):\n    def __init__(self, key): ...\n    def _run(self, q: str): ...\n\
                 def helper(): ...\n";
    let found = file(needs);
    assert_eq!(names(&found), [""; 0]);
    assert_eq!(found.warnings.iter().map(|it| &*it.rule).collect::<Vec<_>>(), ["class"]);
    let private = "\"\"\"\ntitle: Search\nauthor: A\n\"\"\"\nclass Tools:\n    def __init__(self): ...\n    async def _run(self, q: str): ...\n\
                   def helper(): ...\n";
    let found = file(private);
    assert_eq!((names(&found), &*found.warnings[0].rule), (vec![], "class"));
    let public = private.replace("def helper", "    def run(self): ...\ndef helper");
    assert_eq!(names(&file(&public)), ["run"]);
}

#[test]
fn a_server_may_be_made_in_two_branches() {
    let text = "from mcp.server.fastmcp import FastMCP\nif AUTH:\n    mcp = FastMCP('x', auth=AUTH)\nelse:\n    mcp = FastMCP('x')\n\
                @mcp.tool()\ndef f(): ...\n@mcp.prompt()\ndef p(): ...\n@mcp.resource('a://b')\ndef r(): ...\n";
    let found = file(text);
    let roles: Vec<_> = found.functions.iter().map(|it| (it.name.as_str(), it.role.is_tool())).collect();
    assert_eq!(roles, [("f", true), ("p", false), ("r", false)]);
}

#[test]
fn a_server_that_all_names_is_no_mistake() {
    let text = "import tools\nfrom mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\ndef f(): ...\n__all__ = ['mcp', 'tools']\n";
    let found = file(text);
    assert_eq!(names(&found), ["f"]);
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    let absent = file(&text.replace("'tools'", "'tolls'"));
    assert_eq!(absent.warnings.iter().map(|it| &*it.rule).collect::<Vec<_>>(), ["exports"]);
}

#[test]
fn classes_of_frameworks_say_what_their_tools_are() {
    let spec = "from llama_index.core.tools.tool_spec.base import BaseToolSpec\nclass Notes(BaseToolSpec):\n    \
                spec_functions = ['search', ('load', 'aload')]\n    def search(self, q: str): ...\n    def load(self): ...\n    \
                async def aload(self): ...\n    def other(self): ...\n";
    assert_eq!(names(&file(spec)), ["search", "load"]);
    let elsewhere = "from mail.base import MailBaseTool\nclass MailSearch(MailBaseTool):\n    name: str = 'search_mail'\n    \
                     description: str = 'Searches.'\n    def _run(self, query: str): ...\ndef helper(): ...\n";
    assert_eq!(names(&file(elsewhere)), ["search_mail"]);
    let needs = "from langchain_core.tools import BaseTool\nclass Action(BaseTool):\n    mode: str\n    name: str = ''\n    \
                 description: str = ''\n    def _run(self, text: str): ...\n";
    let found = file(needs);
    assert!(found.functions.is_empty() && found.warnings[0].reason.what.ends_with("its constructor needs `mode`"));
    for given in [
        needs.replace("mode: str\n", "mode: str = 'x'\n"),
        needs.replace("mode: str\n", "mode: ClassVar[str]\n"),
        format!("{needs}action = Action(mode='x')\n"),
        needs.replace(
            "    def _run",
            "    @model_validator(mode='before')\n    def fill(cls, values): ...\n    def _run",
        ),
    ] {
        assert_eq!(names(&file(&given)), ["Action"], "{given}");
    }
    let agno = "import atexit\nfrom agno.tools import Toolkit\nclass Shell(Toolkit):\n    def __init__(self):\n        atexit.register(self._end)\n        \
                super().__init__(tools=[self.run])\n    def run(self): ...\n    def _end(self): ...\n";
    assert_eq!(names(&file(agno)), ["run"]);
}

#[test]
fn a_decorator_within_a_class_is_another_one() {
    let text = "def retry(job: str): ...\nclass Client:\n    def retry(f):\n        return f\n    @retry\n    def go(self): ...\n";
    assert_eq!(names(&file(text)), ["retry"]);
}

#[test]
fn functions_of_programs_are_no_tools() {
    for entry in [
        "from notes import mcp\ndef main():\n    mcp.run(transport='stdio')\n",
        "from notes import create_server\ndef run_all(port: int = 1):\n    server = create_server()\n    server.run()\n",
        "import uvicorn\ndef serve_http(port: int):\n    uvicorn.run('app', port=port)\n",
        "from mcp.server import Server\nasync def go():\n    s = Server('x')\n    await s.run(1, 2, 3)\n",
        "import argparse\ndef build():\n    return argparse.ArgumentParser()\n",
        "import functools\ndef timed(f):\n    return f\nclass X:\n    @timed\n    def one(self): ...\n",
        "def retry(times=3):\n    return lambda f: f\ndef _outer():\n    if True:\n        @retry(2)\n        def inner(): ...\n",
        "import argparse\ndef search(args):\n    return args.text\n",
        "import argparse\ndef search(given: argparse.Namespace): ...\n",
        "from starlette.requests import Request\nasync def health(request: Request): ...\n",
    ] {
        let text = format!("{entry}def tool(a: int): ...\n");
        assert_eq!(names(&file(&text)), ["tool"], "{text}");
    }
}

#[test]
fn functions_that_use_what_has_such_names_are_tools() {
    for text in [
        "import httpx\ndef ask(q: str):\n    chain = _build()\n    return chain.invoke(q)\ndef _build(): ...\n",
        "import httpx\ndef ask(q: str):\n    return _session().run(q)\ndef _session(): ...\n",
        "from fabric import Connection\ndef ask(host: str):\n    server = Connection(host)\n    return server.run('uptime')\n",
        "import httpx\ndef ask(server):\n    server.run()\n",
        "import hcloud\ndef ask(n: str):\n    server = hcloud.get(n)\n    server.start()\n",
        "import argparse\ndef ask(line: str):\n    return vars(argparse.ArgumentParser().parse_args(line.split()))\n",
        "import argparse\ndef ask(args):\n    return sum(args)\n",
        "from starlette.requests import Request\ndef ask(url: str, request: Request = None): ...\n",
        "import httpx\nclass Kit:\n    def __init__(self):\n        self.add_tool(self.wrench)\n    def add_tool(self, one): ...\n    \
         def wrench(self): ...\ndef ask(): ...\n",
        "from langchain_core.tools import StructuredTool\nclass Kit:\n    def all(self):\n        return StructuredTool.from_function(self.one)\n    \
         def one(self): ...\ndef ask(): ...\n",
        "import click\n@click.command()\ndef ask(q):\n    engine = build_engine()\n    engine.run(q)\ndef build_engine(): ...\n",
    ] {
        let found = file(text);
        assert!(names(&found).contains(&"ask") && !names(&found).contains(&"wrench"), "{text}");
    }
}

#[test]
fn a_module_of_strands_has_the_tool_that_it_describes() {
    let text = "from strands.types.tools import ToolResult, ToolUse\nTOOL_SPEC = {'name': 'look_up', 'description': 'Looks up.', 'inputSchema': {'json': \
                {'type': 'object', 'properties': {'key': {'type': 'string'}}, 'required': ['key']}}}\ndef helper(): ...\n\
                def look_up(tool: ToolUse, **kwargs) -> ToolResult: ...\n";
    let found = file(text);
    assert_eq!(names(&found), ["look_up"]);
    let tool = &found.functions[0];
    assert_eq!((tool.symbol(), tool.summary.as_deref()), ("tool_spec:look_up", Some("Looks up.")));
    assert_eq!(tool.input_schema.read()["required"], serde_json::json!(["key"]));
    let other = text.replace("def look_up", "def look");
    assert_eq!(names(&file(&other)), ["helper", "look"], "it describes nothing");
}

#[test]
fn functions_that_an_agent_is_given_are_its_tools() {
    for text in [
        "from google.adk.agents import Agent\nroot = Agent(model='x', tools=[f], before_agent_callback=helper)\n",
        "from google.adk import agents\nroot = agents.LlmAgent(tools=[f, AgentTool(agent=other)])\n",
        "from agno.agent import Agent\nAgent(tools=[Other(), f], tool_hooks=[helper]).print_response('hi')\n",
        "from langgraph.prebuilt import create_react_agent\ndef make():\n    return create_react_agent(model, tools=[f])\n",
        "from langgraph.prebuilt import create_react_agent\nTOOLS = [f]\ndef make():\n    return create_react_agent(model, TOOLS)\n",
        "from langgraph.prebuilt import ToolNode\ntools = [f]\nnode = ToolNode(tools)\n",
        "from langchain_openai import ChatOpenAI\nimport langchain\nmodel = ChatOpenAI().bind_tools([f])\n",
    ] {
        let found = file(&format!("def f(a: int): ...\ndef helper(): ...\n{text}"));
        assert_eq!(names(&found), ["f"], "{text}");
    }
    // What it is given of packages says nothing of the file's own functions.
    for text in [
        "from google.adk.agents import Agent\nfrom google.adk.tools import search\nAgent(tools=[search])\n",
        "class Agent: ...\nAgent(tools=[f])\n",
        "from google.adk.agents import Agent\nTOOLS = [f]\nTOOLS.append(helper)\nAgent(tools=TOOLS)\n",
        "from google.adk.agents import Agent\nTOOLS = [f]\nfor one in (helper,):\n    TOOLS.append(one)\nAgent(tools=TOOLS)\n",
        "from google.adk.agents import Agent\nTOOLS = [f]\ndef _more(TOOLS):\n    return Agent(tools=TOOLS)\n",
        "from google.adk.agents import Agent\nTOOLS = [f, traced(helper)]\nAgent(tools=TOOLS)\n",
        "from langgraph.graph import StateGraph\nfrom schemas import Answer\nmodel.bind_tools([Answer])\n",
        "from langgraph.prebuilt import ToolNode\nfrom notes import search\nNODE = ToolNode([search])\n",
        "import agno\nfrom own import Runner\nRunner(tools=[f])\n",
    ] {
        assert_eq!(names(&file(&format!("def f(a: int): ...\ndef helper(): ...\n{text}"))), ["f", "helper"], "{text}");
    }
}

#[test]
fn tools_that_are_made_of_something_else_than_a_function_are_named() {
    let imports = "from langchain_core.tools import StructuredTool, Tool\nfrom agents import FunctionTool\nfrom shop import find\n\
                   import shop\nclass Search:\n    def run(self, q): ...\nsearch = Search()\ndef ok(q: str): ...\n";
    let found = |made: &str| {
        let found = file(&format!("{imports}{made}\n"));
        let rules = found.warnings.iter().filter(|it| it.rule == "inner-tools").count();
        (names(&found).join(" "), rules)
    };
    for (made, expected) in [
        (
            "tools = [Tool(name='up', func=str.upper, description='x'), Tool(name='o', func=ok, description='x')]",
            ("o", 1),
        ),
        ("t = Tool('s', search.run, 'x')", ("", 1)),
        ("t = StructuredTool.from_function(func=lambda q: q, name='x')", ("", 1)),
        ("t = FunctionTool(name='x', params_json_schema={}, on_invoke_tool=ok)", ("", 1)),
        ("t = Tool('x', ok, 'x')", ("x", 0)),
        ("t = StructuredTool.from_function(func=None, coroutine=ok, name='x')", ("x", 0)),
        ("t = StructuredTool.from_function(func=lambda q: q, coroutine=ok, name='x')", ("x", 0)),
        ("t = Tool.from_function(ok, 'x', 'Finds')", ("x", 0)),
        ("t = StructuredTool.from_function(search.run, name='x')", ("", 1)),
        ("other = shop.find\nt = Tool('x', other, 'x')", ("ok", 0)),
        ("t = Tool('x', find, 'x')\nu = Tool(name='y', func=shop.find)", ("ok", 0)),
    ] {
        let (served, count) = found(made);
        assert_eq!((served.as_str(), count), expected, "{made}");
    }
}

#[test]
fn agno_gives_some_parameters_by_name_to_functions_of_its_agents() {
    let text = "from agno.agent import Agent\ndef f(session_state: dict, a: int, agent=None): ...\ndef g(a: int): ...\n\
                AGENT = Agent(tools=[f, g])\n";
    let found = file(text);
    let symbols: Vec<_> = found.functions.iter().map(Function::symbol).collect();
    assert_eq!(symbols, ["agno:f", "g"]);
    let names: Vec<_> =
        found.functions[0].input_schema.read()["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["a"]);
    let strands = file("from strands import tool\n@tool\ndef f(q: str, agent): ...\n");
    assert_eq!(strands.functions[0].input_schema.read()["required"], json!(["q"]));
}
