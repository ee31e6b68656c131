//! Walls that are ready to be entered: what has to be made before a process starts.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Pid, Resource};
use seccompiler::BpfProgram;

use super::layers::{self, Layer};
use super::mount_plan::MountPlan;
use super::namespaces::{Namespaces, has_mounts, has_pids};
use super::own_network::{Door, OwnNetwork, PROXIES};
use super::own_pids::OwnPids;
use super::recording::Reporting;
use super::system_calls::{self, Closing};
use super::temporary::PrivateFolder;
use super::{Access, Walls, files};
use crate::config::recorder::Recorder;
use crate::egress::{AllowedHosts, Proxy};
use crate::process::launch::Launch;
use crate::threads::blocking_or_here;

/// Walls of one process.
pub(in crate::process) struct Prepared {
    /// Its limits.
    most: [(Resource, Option<u64>); 3],
    limits_access: bool,
    /// Those about files.
    rulesets: Vec<OwnedFd>,
    scopes: Option<OwnedFd>,
    filters: &'static [BpfProgram],
    namespaces: Option<Box<Namespaces>>,
    reporting: Option<Reporting>,
    around: Surroundings,
}

/// What belongs to a process within walls, and ends with it.
#[derive(Debug, Default)]
pub(in crate::process) struct Surroundings {
    private: Option<PrivateFolder>,
    way_out: Option<WayOut>,
    has_monitor: bool,
    proxy: Option<Proxy>,
}

/// Where connections to the proxy of a process arrive, and where it leads.
#[derive(Debug)]
enum WayOut {
    /// Out of its own network.
    Chosen(Door, AllowedHosts),
    /// To everything; the hosts are recorded.
    Recorded(TcpListener, Arc<Recorder>),
}

impl Surroundings {
    /// Whether its process has a monitor, and lives in a namespace of pids.
    pub fn has_monitor(&self) -> bool {
        self.has_monitor
    }

    /// Opens the way out, when the process has started.
    pub fn open(&mut self) -> io::Result<()> {
        self.proxy = match self.way_out.take() {
            Some(WayOut::Chosen(door, allowed)) => Some(Proxy::serve(door.socket()?, Arc::new(allowed))?),
            Some(WayOut::Recorded(socket, recorder)) => Some(Proxy::record(socket, recorder)?),
            None => None,
        };
        Ok(())
    }
}

impl Prepared {
    /// Makes the walls of a process, if it has some. Where they name paths, on a thread: one may be on a file system that does not answer.
    pub async fn of(launch: &Launch) -> io::Result<Option<Self>> {
        let Some(walls) = launch.walls.clone() else { return Ok(None) };
        let missing = walls.missing();
        if walls.are_refused_without(&missing) {
            return Err(io::Error::other(layers::lacking(&missing)));
        }
        let within = launch.temporary().to_owned();
        let directory = launch.directory.clone().or_else(|| std::env::current_dir().ok());
        let directory = directory.unwrap_or_else(|| PathBuf::from("/"));
        // Asked for here: it starts a process.
        let can =
            Means { seals: walls.keep_attributes() && has_mounts(), secludes: walls.limit_access() && has_pids() };
        let made = move || Self::new(&walls, &missing, &within, &directory, can);
        if launch.walls.iter().any(|walls| walls.name_paths()) {
            return blocking_or_here(made).await.map(Some);
        }
        made().map(Some)
    }

    fn new(walls: &Walls, missing: &[Layer], within: &Path, directory: &Path, can: Means) -> io::Result<Self> {
        let private = if walls.need_private_folder() { Some(PrivateFolder::create(within)?) } else { None };
        let paths = walls.own.iter().flat_map(|own| own.paths(&walls.environment));
        let own: Vec<PathBuf> = paths.collect::<BTreeSet<_>>().into_iter().collect();
        let limits_files = |access: &&Access| access.limits_files() && !missing.contains(&Layer::Files);
        let limited = walls.access.iter().filter(limits_files);
        let rulesets = limited
            .map(|access| files::ruleset(access, &own, private.as_ref().and_then(PrivateFolder::folder)))
            .collect::<io::Result<Vec<_>>>()?;
        let limits_access = walls.limit_access();
        let scopes = (limits_access && files::has_scopes()).then(files::scopes).transpose()?;
        let filters = if limits_access && !missing.contains(&Layer::SystemCalls) {
            system_calls::filters(Closing {
                network: walls.close_network(),
                attributes: !walls.access.iter().all(Access::changes_files),
                names: walls.access.iter().any(|access| access.read.is_some()),
            })
        } else {
            &[]
        };
        let (network, way_out) = match walls.hosts() {
            Some(hosts) => {
                let (network, door) = OwnNetwork::new()?;
                (Some(network), Some(WayOut::Chosen(door, hosts)))
            }
            None => (None, walls.recorder.as_ref().map(recorded_way_out).transpose()?),
        };
        let pids = can.secludes.then(|| OwnPids::new(directory));
        // Elsewhere, all processes of the user would count.
        let processes = walls.processes.filter(|_| !missing.contains(&Layer::Processes));
        let helpers = if pids.is_some() { OwnPids::HELPERS } else { 0 };
        let most = [
            (Resource::Nproc, processes.map(|most| most + helpers)),
            (Resource::Nofile, walls.open_files),
            (Resource::Fsize, walls.file_size),
        ];
        let around = Surroundings { private, way_out, has_monitor: pids.is_some(), proxy: None };
        let private = around.private.as_ref().map(PrivateFolder::path);
        let mounts = MountPlan { walls, own: &own, private, directory, seals: can.seals }.mounts()?;
        let namespaces = Namespaces::of(pids, network, mounts, processes.is_some()).map(Box::new);
        let report = |recorder| Reporting::begin(recorder, &own, private);
        let reporting = walls.recorder.as_ref().map(report).transpose()?;
        Ok(Self { most, limits_access, rulesets, scopes, filters, namespaces, reporting, around })
    }

    /// Whether the process has a monitor, which ends with hostler in its place.
    pub fn has_monitor(&self) -> bool {
        self.around.has_monitor
    }

    /// The command that starts a program within them.
    #[expect(clippy::unused_self, reason = "on macOS they are part of it")]
    pub fn command(&self, launch: &Launch) -> Command {
        launch.command()
    }

    /// Makes a program use its proxy, and leave the namespaces that it shares. Before everything else that it does to itself: a domain over files forbids
    /// mounts. Its monitor, if it has one, ends with `parent`.
    pub fn depart(&mut self, command: &mut Command, parent: Option<Pid>) {
        let proxy = match &self.around.way_out {
            Some(WayOut::Chosen(..)) => Some(OwnNetwork::proxy()),
            Some(WayOut::Recorded(socket, _)) => socket.local_addr().ok().map(|address| format!("http://{address}")),
            None => None,
        };
        if let Some(proxy) = proxy {
            for variable in PROXIES {
                command.env(variable, &proxy);
            }
            command.env_remove("NO_PROXY").env_remove("no_proxy").env("NODE_USE_ENV_PROXY", "1");
        }
        let Some(mut namespaces) = self.namespaces.take() else { return };
        namespaces.end_with(parent);
        // SAFETY: between fork and exec only system calls are made, and errors from numbers; all memory was allocated before.
        #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
        unsafe {
            command.pre_exec(move || namespaces.enter());
        }
    }

    /// Makes a program start within them.
    pub fn surround(self, command: &mut Command) -> Surroundings {
        let Self { most, limits_access, rulesets, scopes, filters, namespaces: _, reporting, around } = self;
        let sees_own_processes = around.has_monitor;
        if let Some(private) = &around.private {
            for variable in ["TMPDIR", "TMP", "TEMP"] {
                command.env(variable, private.path());
            }
        }
        let enter = move || {
            layers::lower(&most)?;
            if limits_access || reporting.is_some() {
                layers::give_up_capabilities()?;
            }
            if sees_own_processes {
                rulesets.iter().try_for_each(|ruleset| files::allow_own_processes(ruleset.as_raw_fd()))?;
            }
            rulesets.iter().chain(&scopes).try_for_each(|ruleset| files::enter(ruleset.as_raw_fd()))?;
            filters.iter().try_for_each(system_calls::enter)?;
            // The last: what follows is reported.
            reporting.iter().try_for_each(Reporting::enter)
        };
        // SAFETY: between fork and exec only system calls are made, and errors from numbers; all memory was allocated before.
        #[expect(unsafe_code, reason = "a call between fork and exec; argued above")]
        unsafe {
            command.pre_exec(enter);
        }
        around
    }
}

/// What this system can do for a process, asked for where processes are started: that takes one.
#[derive(Clone, Copy)]
struct Means {
    /// Keep the attributes of files that it may not write to.
    seals: bool,
    /// Give it a namespace of pids.
    secludes: bool,
}

/// A proxy on the machine's own loopback: a program that does not use it reaches what it likes, and that is recorded, too.
fn recorded_way_out(recorder: &Arc<Recorder>) -> io::Result<WayOut> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = socket.local_addr()?;
    recorder.add(|record| {
        record.proxies.insert(address);
    });
    Ok(WayOut::Recorded(socket, Arc::clone(recorder)))
}
