//! What leaves the machine for a walled process: the hosts that it may reach, and the proxy that is its only way there.

mod addresses;
mod allowed;
#[cfg(feature = "bench")]
pub mod bench;
mod proxy;
#[cfg(test)]
mod tests;

pub use addresses::{contains, is_private};
pub use allowed::AllowedHosts;
pub use proxy::{CLOSED, Proxy};
