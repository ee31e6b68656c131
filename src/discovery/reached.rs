//! Whether a tool file calls the functions that make tools where they are given what they need: `register(mcp, client)`, by itself or by
//! functions of its helpers. As far as names tell: what is not called in the end has no tools, which its first call says.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::modules::Modules;
use super::python::{Called, Calls, PROGRAM, calls_of};

/// How a function is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// It has been called when the file has run.
    Runs,
    /// A function has to be called that needs no arguments.
    By {
        /// The file that defines it.
        path: PathBuf,
        /// Its name.
        function: String,
    },
}

/// What files call, each of which is read once.
#[derive(Default)]
pub(super) struct KnownCalls(HashMap<PathBuf, Option<Rc<Calls>>>);

impl KnownCalls {
    fn of(&mut self, path: &Path) -> Option<Rc<Calls>> {
        self.0.entry(path.to_owned()).or_insert_with(|| calls_of(path).map(Rc::new)).clone()
    }
}

/// What a file and its helpers call.
pub(super) struct Reached {
    files: Vec<PathBuf>,
    numbers: HashMap<Node, usize>,
    nodes: Vec<Node>,
    /// By the number of a function, those that call it.
    callers: Vec<Vec<usize>>,
    /// What has been called when the file has run.
    by_running: HashSet<usize>,
    /// What is called where the file is the program.
    by_program: HashSet<usize>,
    /// What functions of the file call by names that mean one thing.
    certain: HashSet<usize>,
    /// What the worker can call as it is.
    callable: HashSet<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Node {
    /// A function or method of a file: `Server.register`. The top level is the empty name.
    Function(usize, String),
    /// Every method of a name.
    Methods(String),
}

const CONSTRUCTORS: [&str; 2] = ["__init__", "__post_init__"];

impl Reached {
    pub(super) fn of(file: &Path, helpers: &[PathBuf], known: &mut KnownCalls) -> Self {
        let paths = std::iter::once(file).chain(helpers.iter().map(PathBuf::as_path));
        let (files, calls): (Vec<PathBuf>, Vec<Rc<Calls>>) =
            paths.filter_map(|path| Some((path.to_owned(), known.of(path)?))).unzip();
        let mut reached = Self {
            files,
            numbers: HashMap::new(),
            nodes: Vec::new(),
            callers: Vec::new(),
            by_running: HashSet::new(),
            by_program: HashSet::new(),
            certain: HashSet::new(),
            callable: HashSet::new(),
        };
        let called = reached.connect(&calls);
        let mut from = |owner: &str| {
            let start = reached.number(Node::Function(0, owner.to_owned()));
            follow(vec![start], |node| called.get(node).map_or(&[], Vec::as_slice))
        };
        (reached.by_running, reached.by_program) = (from(""), from(PROGRAM));
        let own = reached.nodes.iter().enumerate().filter(|(_, node)| matches!(node, Node::Function(0, _)));
        reached.certain = follow(own.map(|(number, _)| number).collect(), |number| match reached.nodes[number] {
            Node::Function(..) => called.get(number).map_or(&[], Vec::as_slice),
            Node::Methods(_) => &[],
        });
        for (file, calls) in calls.iter().enumerate() {
            // What a helper does as a program is not done.
            let names = calls.callable.iter().filter(|name| file == 0 || **name != PROGRAM);
            let names = names.map(|name| Node::Function(file, name.clone()));
            let numbers: Vec<usize> = names.map(|node| reached.number(node)).collect();
            reached.callable.extend(numbers);
        }
        reached
    }

    /// How a function of one of these files is reached, or a method: `Server.register`.
    pub(super) fn way_to(&self, path: &Path, function: &str) -> Option<Way> {
        let file = self.files.iter().position(|file| file == path)?;
        let start = *self.numbers.get(&Node::Function(file, function.to_owned()))?;
        if self.by_running.contains(&start) {
            return Some(Way::Runs);
        }
        let mut callable = Vec::new();
        let (mut seen, mut waiting) = (HashSet::from([start]), VecDeque::from([start]));
        while let Some(node) = waiting.pop_front() {
            if node != start
                && self.callable.contains(&node)
                && let Node::Function(file, function) = &self.nodes[node]
            {
                callable.push((node, *file, function));
            }
            let callers = self.callers.get(node).into_iter().flatten();
            waiting.extend(callers.filter(|caller| seen.insert(**caller)));
        }
        // One that the program calls, or a public one; of several the nearest, which does the least beside.
        let rank = |(node, _, function): &(usize, usize, &String)| {
            (!self.by_program.contains(node), function.starts_with('_'))
        };
        let (_, file, function) = callable.into_iter().min_by_key(rank)?;
        Some(Way::By { path: self.files[file].clone(), function: function.clone() })
    }

    /// Whether functions of the tool file call one of another file, by names that mean one thing.
    pub(super) fn is_certain(&self, path: &Path, function: &str) -> bool {
        let file = self.files.iter().position(|file| file == path);
        let number = file.and_then(|file| self.numbers.get(&Node::Function(file, function.to_owned())));
        number.is_some_and(|number| self.certain.contains(number))
    }

    /// What each function calls.
    fn connect(&mut self, calls: &[Rc<Calls>]) -> Vec<Vec<usize>> {
        let files = self.files.clone();
        let modules = Modules::of(files.iter().zip(calls).map(|(path, own)| (path.as_path(), own.imports.as_slice())));
        let mut edges = Vec::new();
        for (file, own) in calls.iter().enumerate() {
            for (owner, called) in &own.by {
                let node = Node::Function(file, owner.clone());
                let from = self.number(node.clone());
                if let Some((class, method)) = owner.split_once('.') {
                    edges.push((self.number(Node::Methods(method.to_owned())), from));
                    // A class is its constructor.
                    if CONSTRUCTORS.contains(&method) {
                        edges.push((self.number(Node::Function(file, class.to_owned())), from));
                    }
                }
                for called in called {
                    let meant = meant(&files[file], calls, &modules, file, called);
                    edges.extend(meant.map(|node| (from, self.number(node))));
                }
            }
        }
        let mut called = vec![Vec::new(); self.nodes.len()];
        self.callers = vec![Vec::new(); self.nodes.len()];
        for (from, to) in edges {
            called[from].push(to);
            self.callers[to].push(from);
        }
        called
    }

    fn number(&mut self, node: Node) -> usize {
        let next = self.nodes.len();
        *self.numbers.entry(node).or_insert_with_key(|node| {
            self.nodes.push(node.clone());
            next
        })
    }
}

/// What a file means by what it calls.
fn meant(from: &Path, calls: &[Rc<Calls>], modules: &Modules<'_>, file: usize, called: &Called) -> Option<Node> {
    let find = |dotted: &str| {
        let has = |other: usize, name: &str| {
            let known = &calls[other].by;
            known.contains_key(name) || CONSTRUCTORS.iter().any(|one| known.contains_key(&format!("{name}.{one}")))
        };
        modules.find(from, dotted, &has)
    };
    match called {
        Called::Own(name) => Some(Node::Function(file, name.clone())),
        Called::Method(name) => Some(Node::Methods(name.clone())),
        Called::Module(dotted) => Some(Node::Function(modules.module(from, dotted)?, String::new())),
        Called::Outside(full) => {
            if let Some((other, name)) = find(full) {
                return Some(Node::Function(other, name));
            }
            // `NoteTools.register`
            let (class, method) = full.rsplit_once('.')?;
            let is_class = |other: usize, name: &str| {
                calls[other].by.keys().any(|owner| owner.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
            };
            if let Some((other, name)) = modules.find(from, class, &is_class) {
                return Some(Node::Function(other, format!("{name}.{method}")));
            }
            // An instance of another module: `app.register`
            modules.module(from, class.rsplit_once('.')?.0).map(|_| Node::Methods(method.to_owned()))
        }
    }
}

/// What is reached from these.
fn follow<'n>(mut waiting: Vec<usize>, next: impl Fn(usize) -> &'n [usize]) -> HashSet<usize> {
    let mut reached: HashSet<usize> = waiting.iter().copied().collect();
    while let Some(node) = waiting.pop() {
        waiting.extend(next(node).iter().filter(|next| reached.insert(**next)));
    }
    reached
}
