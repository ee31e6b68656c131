//! Tools of one file that have the same name: one of them has it. The others are told apart by names of their own, by which the
//! operator gives them further ones.

use std::collections::HashSet;

use super::several::{MADE, place_within};
use super::{Function, ToolFile};
use crate::pep723::nearest_identifier;

impl ToolFile {
    /// Gives each of its tools a name that no other one of it has.
    pub(super) fn tell_tools_apart(&mut self) {
        let own_path = self.path.clone();
        let place = |function: &Function| {
            let helper = function.defined_in.as_deref()?;
            place_within(&own_path, helper).or_else(|| Some(helper.file_name()?.to_string_lossy().into_owned()))
        };
        tell_apart(&mut self.functions, place);
    }
}

/// Gives each of these tools a name that no other one has. Of those that one function makes in one of its branches or the other, the
/// first stands for both.
pub(super) fn tell_apart(functions: &mut Vec<Function>, place: impl Fn(&Function) -> Option<String>) {
    let mut alternatives = HashSet::new();
    functions.retain(|function| match function.without_line() {
        Some(made) => alternatives.insert((made, function.own_name().to_owned(), function.server.clone())),
        None => true,
    });
    let mut taken = HashSet::new();
    // A tool that has its name already keeps it.
    for is_second in [false, true] {
        for function in functions.iter_mut().filter(|it| it.role.is_tool() && it.wanted.is_some() == is_second) {
            if taken.insert(function.own_name().to_owned()) {
                if let Some(name) = function.wanted.take() {
                    function.name = name;
                }
            } else if !is_second {
                function.symbol.get_or_insert_with(|| function.name.clone());
                function.wanted = Some(function.name.clone());
            }
        }
    }
    taken.extend(functions.iter().filter(|it| it.wanted.is_none()).map(|it| it.name.clone()));
    for function in functions.iter_mut().filter(|it| it.wanted.is_some()) {
        let mut names = function.other_names(place(function));
        if let Some(name) = names.find(|name| !taken.contains(name)) {
            taken.insert(name.clone());
            function.name = name;
        }
    }
}

impl Function {
    /// The name that its file gives it, which another tool of the file may have.
    pub(super) fn own_name(&self) -> &str {
        self.wanted.as_deref().unwrap_or(&self.name)
    }

    /// What makes it and its function, without the line: `made:register::search`.
    fn without_line(&self) -> Option<String> {
        let (way, made) = self.symbol().split_once(MADE)?;
        let (maker, rest) = made.split_once(':')?;
        Some(format!("{way}{MADE}{maker}::{}", rest.split_once(':')?.1))
    }

    /// Candidates for another name, in this order: the function's, `file_function`, and the function's with a number.
    fn other_names(&self, place: Option<String>) -> impl Iterator<Item = String> + use<> {
        let symbol = self.symbol_in_file();
        let of_code = nearest_identifier(symbol.rsplit(':').next().unwrap_or(&symbol));
        let stem = place.map(|place| place.strip_suffix(".py").map(str::to_owned).unwrap_or(place));
        let with_file = stem.map(|stem| nearest_identifier(&format!("{stem}_{of_code}")));
        let numbered = of_code.clone();
        std::iter::once(of_code).chain(with_file).chain((2_u32..).map(move |number| format!("{numbered}_{number}")))
    }
}
