//! What Python refuses, held to what `CPython` 3.11 says of each text; what it takes must not be refused.

use super::*;

/// Texts, where each is refused, and what is said of it.
const REFUSED: &[(&str, usize, &str)] = &[
    ("def f(): ...\nreturn 1\n", 2, "`return` statement outside of a function"),
    ("class A:\n    return 1\n", 2, "`return` statement outside of a function"),
    ("yield 1\n", 1, "`yield` statement outside of a function"),
    ("def f():\n    return [(yield a) for a in b]\n", 2, "`yield` statement outside of a function"),
    ("class A:\n    x = (yield)\n", 2, "`yield` statement outside of a function"),
    ("await f()\n", 1, "`await` statement outside of a function"),
    ("def f():\n    await g()\n", 2, "`await` outside of an asynchronous function"),
    ("async def f():\n    lambda: await g()\n", 2, "`await` outside of an asynchronous function"),
    ("def f():\n    async with a: ...\n", 2, "`async with` outside of an asynchronous function"),
    (
        "def f():\n    return [x async for x in y]\n",
        2,
        "asynchronous comprehension outside of an asynchronous function",
    ),
    ("async def f():\n    yield 1\n    return 2\n", 3, "`return` with value in async generator"),
    ("break\n", 1, "`break` outside loop"),
    ("for x in y:\n    def f():\n        break\n", 3, "`break` outside loop"),
    ("for x in y: ...\nelse:\n    break\n", 3, "`break` outside loop"),
    ("while 1:\n    class A:\n        continue\n", 3, "`continue` outside loop"),
    ("def f(a, a): ...\n", 1, "Duplicate parameter \"a\""),
    ("x = lambda a, *a: 1\n", 1, "Duplicate parameter \"a\""),
    ("f(a=1, a=2)\n", 1, "Duplicate keyword argument `a`"),
    ("nonlocal x\n", 1, "nonlocal declaration not allowed at module level"),
    ("def f(a):\n    global a\n", 2, "name `a` cannot refer to a parameter and a global variable"),
    ("def f():\n    x = 1\n    global x\n", 2, "name `x` is used prior to global declaration"),
    ("def f():\n    from os import *\n", 2, "`from os import *` only allowed at module level"),
    ("import os\nfrom __future__ import annotations\n", 2, "__future__ imports must be at the top of the file"),
    ("*a, *b = c\n", 1, "Two starred expressions in assignment"),
    ("match x:\n    case a: ...\n    case 1: ...\n", 2, "name capture `a` makes remaining patterns unreachable"),
    (
        "class A:\n    x = [(a := 1) for b in c]\n",
        2,
        "assignment expression within a comprehension cannot be used in a class body",
    ),
];

const TAKEN: &[&str] = &[
    "def f():\n    return\n    yield\nx = lambda: (yield)\n",
    "async def f():\n    async for x in y: await x\n    return [await x async for x in [await z for z in y]]\n",
    "def f():\n    return (x async for x in y), (await x for x in y), ([await a for a in b] for b in c)\n",
    "async def f():\n    async def g(): return await h\n    class A:\n        y = [i for i in range(3)]\n    yield 1\n    return\n",
    "for x in y:\n    if x: break\n    try: continue\n    finally: pass\n    with a:\n        break\nelse: pass\n",
    "while 1:\n    for x in y: ...\n    else: break\n",
    "def f():\n    for x in y:\n        class A:\n            for z in w: break\n        def g():\n            while 1: continue\n        break\n",
    "def f():\n    [x for _ in y]\n    def g(): return x\n    global x\n    x = 1\n",
    "global x\nx = 1\nclass A:\n    global x\n    x = 1\n",
    "def f():\n    def g():\n        nonlocal x\n        x = 2\n    x = 1\n",
    "\"\"\"Doc.\"\"\"\nfrom __future__ import annotations\nimport os\n",
    "match x:\n    case {'a': a} | {'b': a}: ...\n    case [a, *_] if a: ...\n    case _: ...\n",
    "x = [y := 1, y ** 2], [(w := a) for a in b], *c\n",
    "def f(a, /, b, *, c, **d): return lambda a, b=a: a\n",
];

#[test]
fn what_the_compiler_refuses_breaks_a_file() {
    for (text, line, words) in REFUSED {
        let told = broken(&file(text));
        assert!(told.starts_with(&format!("line {line}: not valid Python: {words}; ")), "{text}: {told}");
    }
}

#[test]
fn what_the_compiler_takes_breaks_none() {
    for text in TAKEN {
        assert_eq!(broken(&file(text)), "ready", "{text}");
    }
}

#[test]
fn a_tree_that_is_walked_takes_no_more_stack_than_there_is() {
    // A thread of a test has two megabytes, and a link of so many tokens is as many levels at most.
    let chains = [
        ("", "-", "1", 1),
        ("a", ".a", "", 2),
        ("", "lambda:", "1", 2),
        ("", "1 if 1 else ", "1", 4),
        ("f", "()", "", 2),
    ];
    for (before, link, after, tokens) in chains {
        let chain = format!("x = {before}{}{after}\nbreak\n", link.repeat(980 / tokens));
        assert!(broken(&file(&chain)).starts_with("line 2: not valid Python: `break`"), "{link}");
    }
}
