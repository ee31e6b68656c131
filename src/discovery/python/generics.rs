//! Generic classes of the file, with arguments for their type parameters: `Box[int]`, `class Boxes(Page[Box])`.

use std::collections::HashMap;
use std::rc::Rc;

use ruff_python_ast::{Expr, ExprSubscript, Operator, StmtClassDef, TypeParam, TypeParams};

use super::classes::{ClassKind, LONGEST_ANCESTRY};
use super::containers::elements;
use super::literals::keyword;
use super::module::Module;
use super::names::{Named, dotted};
use super::schema::{LARGEST_ALIAS, Reference, Schema, Target, admits_anything, size_of};
use super::types::Hints;

/// What type parameters stand for, by their names.
pub(super) type Parameters<'a> = HashMap<&'a str, Argument<'a>>;

/// A type parameter: `T` of `class Box[T = int]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter<'a> {
    name: &'a str,
    default: Option<&'a Expr>,
}

/// What a type parameter stands for.
#[derive(Debug, Clone, Default)]
pub(super) struct Argument<'a> {
    schema: Schema,
    /// What it refers to, which also says on which side it was read.
    references: Vec<Reference<'a>>,
    size: usize,
    text: String,
    /// How often it was nested in another type: `Tree[list[T]]` within `Tree[T]` would not end.
    growth: usize,
}

/// A generic class with arguments for its type parameters, without those that are unknown.
#[derive(Debug)]
pub(super) struct BoundClass<'a> {
    pub(super) class: &'a StmtClassDef,
    pub(super) parameters: Rc<Parameters<'a>>,
    /// Its name among the definitions, as pydantic writes it: `Page_int_`.
    pub(super) name: String,
    /// The number of the first class with the same arguments on any side. All of these have one name.
    pub(super) first: usize,
}

/// More of them in one file are left open.
const MOST_BOUND: usize = 2000;
/// Arguments that were nested more often are left open.
const MOST_GROWTH: usize = 3;
/// Deeper arguments of generic classes are left open.
const DEEPEST_WRITTEN: usize = 8;
/// Longer names of definitions are cut.
const LONGEST_NAME: usize = 64;

impl<'a> Hints<'_, 'a> {
    /// A class of the file with arguments for its type parameters. One with ancestors in other files is described by the worker, if it is
    /// a pydantic model with arguments.
    pub(super) fn bound(&mut self, class: &'a StmtClassDef, generic: &ExprSubscript) -> Schema {
        let ancestry = self.module.ancestry(class);
        if ancestry.is_complete {
            return self.with_arguments(class, elements(&generic.slice)).unwrap_or_else(|| self.class(class));
        }
        let is_model = ancestry.kind == ClassKind::Model;
        let written = written_type(self.module, &generic.slice, DEEPEST_WRITTEN).filter(|_| is_model);
        let name = written.and_then(|arguments| Some(format!("{}[{arguments}]", dotted(&generic.value)?)));
        name.and_then(|name| self.live_named(self.module.name_for_worker(&generic.value, name)?))
            .unwrap_or_else(|| self.class(class))
    }

    /// A reference to the class with these arguments; `None` if nothing is known of them.
    fn with_arguments(&mut self, class: &'a StmtClassDef, given: &[Expr]) -> Option<Schema> {
        let side = self.side_of(class)?;
        let outside = std::mem::replace(&mut self.side, side);
        let parameters = self.arguments(class, given);
        self.side = outside;
        if parameters.is_empty() {
            return None;
        }
        let name = self.name_with(class, given);
        let number = self.module.bind_class(class, parameters, name)?;
        Some(self.refer(Reference { side, target: Target::Bound(number) }))
    }

    /// The name of its definition: `Node_str_int_` for `Node[str]` of `class Node[K, V = int]`.
    fn name_with(&self, class: &'a StmtClassDef, given: &[Expr]) -> String {
        let parameters = self.module.type_parameters(class).unwrap_or_default();
        let defaults = parameters.iter().skip(given.len()).filter_map(|parameter| parameter.default);
        let texts: Vec<String> = given.iter().chain(defaults).map(|it| self.text_of(it, DEEPEST_WRITTEN)).collect();
        definition_name(&class.name, &texts.join(","))
    }

    /// A class of the file without arguments: its type parameters stand for their defaults, where they have any.
    pub(super) fn with_defaults(&mut self, class: &'a StmtClassDef) -> Schema {
        // A default may mention the class itself.
        let is_within = self.defaulted.iter().any(|other| std::ptr::eq(*other, class));
        if is_within || class.type_params.is_none() && class.arguments.is_none() {
            return self.class(class);
        }
        self.defaulted.push(class);
        let schema = self.with_arguments(class, &[]);
        self.defaulted.pop();
        schema.unwrap_or_else(|| self.class(class))
    }

    /// `Self`, in the definition of a class.
    pub(super) fn itself(&mut self) -> Schema {
        let Some(class) = self.described else { return Schema::new() };
        match (self.described_bound, self.side_of(class)) {
            (Some(number), Some(side)) => self.refer(Reference { side, target: Target::Bound(number) }),
            _ => self.class(class),
        }
    }

    /// What the type parameters of a class stand for, as far as that is known.
    fn arguments(&mut self, class: &'a StmtClassDef, given: &[Expr]) -> Parameters<'a> {
        let parameters = self.module.type_parameters(class).unwrap_or_default();
        let mut found = self.arguments_of(&parameters, given);
        found.retain(|_, argument| !admits_anything(&argument.schema));
        found
    }

    /// What these type parameters stand for: an argument, or else their default. Empty where they do not fit together.
    fn arguments_of(&mut self, parameters: &[Parameter<'a>], given: &[Expr]) -> Parameters<'a> {
        let rest = parameters.get(given.len()..);
        // Without any arguments, those without a default are open.
        if rest.is_none_or(|rest| !given.is_empty() && rest.iter().any(|parameter| parameter.default.is_none())) {
            return Parameters::new();
        }
        let outer = std::mem::take(&mut self.references);
        let mut found = Parameters::new();
        for (place, parameter) in parameters.iter().enumerate() {
            let around = Rc::clone(&self.parameters);
            if given.len() <= place {
                self.parameters = Rc::new(found.clone()); // a default may name those before it
            }
            if let Some(hint) = given.get(place).or(parameter.default) {
                let growth = self.growth_of(hint, DEEPEST_WRITTEN);
                if growth <= MOST_GROWTH {
                    let schema = self.inner(hint);
                    let references = std::mem::take(&mut self.references);
                    let (size, text) = (size_of(&schema), self.text_of(hint, DEEPEST_WRITTEN));
                    found.insert(parameter.name, Argument { schema, references, size, text, growth });
                }
            }
            self.parameters = around;
        }
        self.references = outer;
        found
    }

    /// An alias with type parameters: `Pair[int]` of `type Pair[T] = tuple[T, T]`, or of `Pair = tuple[T, T]`. One that mentions itself is
    /// left open.
    pub(super) fn alias_with(&mut self, value: &'a Expr, parameters: &[Parameter<'a>], given: &[Expr]) -> Schema {
        if self.reading.iter().any(|other| std::ptr::eq(*other, value)) {
            return Schema::new();
        }
        let mut bound = self.arguments_of(parameters, given);
        for parameter in parameters {
            bound.entry(parameter.name).or_default();
        }
        self.reading.push(value);
        let around = (self.owner.take(), std::mem::replace(&mut self.parameters, Rc::new(bound)));
        let schema = self.inner(value);
        (self.owner, self.parameters) = around;
        self.reading.pop();
        let size = size_of(&schema);
        if size > LARGEST_ALIAS || !self.module.budget.spend(size) { Schema::new() } else { schema }
    }

    /// What a name stands for that is a type parameter of the class whose definition is read.
    pub(super) fn parameter(&mut self, name: &str) -> Option<Schema> {
        if let Some(argument) = self.parameters.get(name) {
            if argument.size > LARGEST_ALIAS || !self.module.budget.spend(argument.size) {
                return Some(Schema::new());
            }
            let schema = argument.schema.clone();
            let new = argument.references.iter().filter(|reference| !self.references.contains(reference));
            let new: Vec<Reference<'a>> = new.copied().collect();
            self.references.extend(new);
            return Some(schema);
        }
        let written = self.owner.and_then(|owner| owner.type_params.as_deref());
        let is_own = written.is_some_and(|written| written_parameters(written).iter().any(|own| own.name == name));
        is_own.then(Schema::new)
    }

    /// What the type parameters of a class and of its ancestors stand for, by the classes' places, where its own stand for these.
    pub(super) fn parameters_of_bases(
        &mut self,
        class: &'a StmtClassDef,
        own: Rc<Parameters<'a>>,
    ) -> HashMap<usize, Rc<Parameters<'a>>> {
        let is_model = self.module.ancestry(class).kind == ClassKind::Model;
        let is_of_pydantic = !is_model && self.module.imports.iter().any(|import| import.starts_with("pydantic"));
        let mut found = HashMap::new();
        let mut left = vec![(class, own)];
        while let Some((class, parameters)) = left.pop() {
            if found.len() > LONGEST_ANCESTRY || found.contains_key(&std::ptr::from_ref(class).addr()) {
                continue;
            }
            // Of two ways to a class, the first counts, as for Python.
            for written in class.arguments.iter().flat_map(|arguments| arguments.args.iter().rev()) {
                let generic = written.as_subscript_expr();
                let Named::Class(parent) = self.module.resolve(generic.map_or(written, |it| &it.value)) else {
                    continue;
                };
                self.parameters = Rc::clone(&parameters);
                self.owner = Some(class);
                let given = generic.map(|generic| elements(&generic.slice)).unwrap_or_default();
                let mut of_parent = self.arguments(parent, given);
                // In `class Boxes(Box[list[T]], Generic[T])`, pydantic confuses the two `T`, except in its own models.
                of_parent.retain(|_, argument| !is_of_pydantic || argument.growth < 2);
                left.push((parent, Rc::new(of_parent)));
            }
            found.insert(std::ptr::from_ref(class).addr(), parameters);
        }
        (self.parameters, self.owner) = (Rc::default(), None);
        found
    }

    /// The hints that are read next are written in this class.
    pub(super) fn within(&mut self, class: &'a StmtClassDef) {
        self.owner = Some(class);
        self.parameters = self.parameters_by_class.get(&std::ptr::from_ref(class).addr()).cloned().unwrap_or_default();
    }

    /// How often type parameters that a hint mentions were put into something else, with this time; 0 if it mentions none.
    fn growth_of(&self, hint: &Expr, depth: usize) -> usize {
        match hint {
            // 1 if it is passed on as it is.
            Expr::Name(name) => self.parameters.get(name.id.as_str()).map_or(0, |argument| argument.growth.max(1)),
            Expr::Subscript(generic) => {
                let Some(depth) = depth.checked_sub(1) else {
                    return usize::from(!self.parameters.is_empty()) * usize::MAX;
                };
                let growth = self.growth_of(&generic.slice, depth);
                if growth > 0 { growth.saturating_add(1) } else { 0 }
            }
            Expr::Tuple(tuple) => tuple.elts.iter().map(|part| self.growth_of(part, depth)).max().unwrap_or_default(),
            Expr::BinOp(_) => branches(hint).map(|branch| self.growth_of(branch, depth)).max().unwrap_or_default(),
            Expr::StringLiteral(text) => match depth.checked_sub(1) {
                Some(depth) => Module::unquote(text).map_or(0, |hint| self.growth_of(&hint, depth)),
                None => 0,
            },
            _ => 0,
        }
    }

    /// A hint as people write it, for the name of a definition.
    fn text_of(&self, hint: &Expr, depth: usize) -> String {
        let mut text = self.whole_text_of(hint, depth);
        text.truncate(text.floor_char_boundary(LONGEST_NAME));
        text
    }

    fn whole_text_of(&self, hint: &Expr, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else { return String::new() };
        let part = |part: &Expr| self.text_of(part, depth);
        match hint {
            Expr::NoneLiteral(_) => "None".to_owned(),
            Expr::Name(name) => {
                self.parameters.get(name.id.as_str()).map_or_else(|| name.id.to_string(), |it| it.text.clone())
            }
            Expr::Attribute(attribute) => attribute.attr.to_string(),
            Expr::Subscript(generic) => format!("{}[{}]", part(&generic.value), part(&generic.slice)),
            Expr::Tuple(tuple) => tuple.elts.iter().take(DEEPEST_WRITTEN).map(part).collect::<Vec<_>>().join(", "),
            Expr::BinOp(_) => {
                let mut parts: Vec<String> = branches(hint).take(DEEPEST_WRITTEN).map(part).collect();
                parts.reverse();
                parts.join(" | ")
            }
            Expr::StringLiteral(text) => format!("'{}'", text.value.to_str()),
            _ => String::new(),
        }
    }
}

impl<'a> Module<'a> {
    /// The names of the type parameters of a class, in order; `None` where one stands for several types.
    pub(super) fn type_parameters(&self, class: &'a StmtClassDef) -> Option<Vec<Parameter<'a>>> {
        if let Some(written) = class.type_params.as_deref() {
            let parameters = written_parameters(written);
            return (parameters.len() == written.type_params.len()).then_some(parameters);
        }
        let bases = class.arguments.iter().flat_map(|arguments| &arguments.args);
        let generics: Vec<&'a ExprSubscript> = bases.filter_map(Expr::as_subscript_expr).collect();
        let is_listing = |generic: &&&'a ExprSubscript| {
            let name = self.outside_name(&generic.value).unwrap_or_default();
            matches!(name.rsplit('.').next(), Some("Generic" | "Protocol"))
        };
        let listing = generics.iter().find(is_listing);
        let mut names = Vec::new();
        for generic in listing.map_or(&generics[..], std::slice::from_ref) {
            self.add_variables(&generic.slice, &mut names, DEEPEST_WRITTEN);
        }
        Some(names)
    }

    /// The type variables that an alias mentions: `T` of `Pair = tuple[T, T]`.
    pub(super) fn variables_of(&self, value: &'a Expr) -> Vec<Parameter<'a>> {
        let mut found = Vec::new();
        self.add_variables(value, &mut found, DEEPEST_WRITTEN);
        found
    }

    /// The type variables in a hint, in the order in which they are mentioned first.
    fn add_variables(&self, hint: &'a Expr, names: &mut Vec<Parameter<'a>>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match hint {
            Expr::Name(name) => match self.resolve(hint) {
                Named::Value { value, .. } if is_parameter(self, value) => {
                    let default = value.as_call_expr().and_then(|made| keyword(made, "default"));
                    if !names.iter().any(|other| other.name == name.id.as_str()) {
                        names.push(Parameter { name: &name.id, default });
                    }
                }
                _ => {}
            },
            Expr::Subscript(generic) => self.add_variables(&generic.slice, names, depth),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|part| self.add_variables(part, names, depth)),
            Expr::BinOp(_) => {
                let branches: Vec<&'a Expr> = branches(hint).collect();
                branches.into_iter().rev().for_each(|branch| self.add_variables(branch, names, depth));
            }
            _ => {}
        }
    }

    /// The number of a class with arguments, each of which is kept once; `None` if there are too many.
    fn bind_class(&self, class: &'a StmtClassDef, parameters: Parameters<'a>, name: String) -> Option<usize> {
        let mut known = self.bound_classes.borrow_mut();
        let is_like = |other: &BoundClass<'a>| {
            std::ptr::eq(other.class, class)
                && other.parameters.len() == parameters.len()
                && other
                    .parameters
                    .iter()
                    .all(|(name, it)| parameters.get(name).is_some_and(|own| own.schema == it.schema))
        };
        // Their references say on which side the arguments were read.
        let is_same = |other: &BoundClass<'a>| {
            other
                .parameters
                .iter()
                .all(|(name, it)| parameters.get(name).is_some_and(|own| own.references == it.references))
        };
        let mut alike = known.iter().enumerate().filter(|(_, other)| is_like(other));
        let first = alike.clone().find(|(_, other)| other.name == name).map_or(known.len(), |(number, _)| number);
        if let Some((number, _)) = alike.find(|(_, other)| is_same(other)) {
            return Some(number);
        }
        if known.len() >= MOST_BOUND {
            return None;
        }
        known.push(Rc::new(BoundClass { class, parameters: Rc::new(parameters), name, first }));
        Some(known.len() - 1)
    }

    /// A class with arguments, by its number.
    pub(super) fn bound_class(&self, number: usize) -> Option<Rc<BoundClass<'a>>> {
        self.bound_classes.borrow().get(number).map(Rc::clone)
    }
}

/// The types of `A | B | C`, from the last to the first: the parser nests them to the left.
fn branches(hint: &Expr) -> impl Iterator<Item = &Expr> {
    let mut left = Some(hint);
    std::iter::from_fn(move || {
        let at = left.take()?;
        let Expr::BinOp(either) = at else { return Some(at) };
        left = Some(&either.left);
        Some(&*either.right)
    })
}

/// `T` of `class Box[T]`, without those that stand for several types.
pub(super) fn written_parameters(parameters: &TypeParams) -> Vec<Parameter<'_>> {
    let single = parameters.type_params.iter().filter_map(TypeParam::as_type_var);
    single.map(|variable| Parameter { name: &variable.name, default: variable.default.as_deref() }).collect()
}

/// `Page_int_` for `Page[int]`, as pydantic does.
fn definition_name(class: &str, arguments: &str) -> String {
    let whole = format!("{class}[{arguments}]");
    whole.chars().map(|c| if c.is_alphanumeric() || "_-.".contains(c) { c } else { '_' }).take(LONGEST_NAME).collect()
}

/// A hint as text that means the same at the top level of the file. `None` for one that mentions a type parameter, or anything but types.
fn written_type(module: &Module<'_>, hint: &Expr, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let part = |hint| written_type(module, hint, depth);
    match hint {
        Expr::NoneLiteral(_) => Some("None".to_owned()),
        Expr::Name(_) | Expr::Attribute(_) => match module.resolve(hint) {
            Named::Outside(_) | Named::Class(_) => dotted(hint),
            _ => None,
        },
        Expr::Subscript(generic) => Some(format!("{}[{}]", part(&generic.value)?, part(&generic.slice)?)),
        Expr::Tuple(tuple) => {
            let parts: Option<Vec<String>> = tuple.elts.iter().map(part).collect();
            parts.map(|parts| parts.join(", "))
        }
        Expr::BinOp(operation) if operation.op == Operator::BitOr => {
            Some(format!("{} | {}", part(&operation.left)?, part(&operation.right)?))
        }
        _ => None,
    }
}

/// Whether a value is a type parameter, which stands for any type: `TypeVar("T")`.
pub(super) fn is_parameter(module: &Module<'_>, value: &Expr) -> bool {
    let made = value.as_call_expr().and_then(|call| module.outside_name(&call.func));
    made.is_some_and(|name| matches!(name.as_str(), "typing.TypeVar" | "typing_extensions.TypeVar"))
}
