//! What leaves the machine for a walled process: the hosts that it may reach, and the proxy that is its only way there.

mod addresses;
mod allowed;
#[cfg(all(feature = "bench", target_os = "linux"))]
pub mod bench;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

pub use addresses::{contains, is_private};
pub use allowed::{AllowedHosts, CLOSED};
#[cfg(target_os = "linux")]
pub use proxy::Proxy;
