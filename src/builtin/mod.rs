//! Tools that run inside this program: hostler's own, each off until the configuration names it, and those of whoever embeds
//! the library, who implements [`Builtin`] and hands it to [`Builtins::register`].

mod call;
mod files;
mod host;
mod located;
mod roots;
mod search;
mod set;
mod shell;
mod system;
#[cfg(test)]
mod testing;
mod tool;
mod web;

pub use call::{Call, LookUp, Stop};
pub use located::Located;
pub use roots::Roots;
use roots::here;
pub use set::{Builtins, Unregistered};
pub use tool::{About, Builtin};

use crate::config::Config;

/// Adds all that hostler brings.
fn own(config: &Config, tools: &mut Builtins) {
    let folders = config.layer.builtin.roots.as_ref().map(|roots| roots.value.clone()).unwrap_or_default();
    let roots = Roots::new(folders);
    let added = files::add(tools, &roots)
        .and_then(|()| search::add(tools, &roots))
        .and_then(|()| shell::add(tools, &roots))
        .and_then(|()| system::add(tools))
        .and_then(|()| web::add(tools, config))
        .and_then(|()| host::add(tools));
    // Two of one name would be ours to mend; a test holds that there are none.
    debug_assert!(added.is_ok(), "{added:?}");
}
