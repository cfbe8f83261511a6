//! What the sandbox's supervisor saw a program do, as effects. What a program writes to its
//! workspace is told here for whoever watches; the last word on it has the layer, at the end.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use glovebox_backend::{Notice, Noticed};
use glovebox_model::{
    Approach, ByteString, Deed, FileOp, FileRead, FileWrite, NetCode, NetworkRequest, ProcessSpawn,
    Spoken,
};

use super::gathering::{Gathering, Observed};
use super::permissions::{Permissions, Place, place};

/// Of paths and addresses that are told once.
const MOST_TOLD: usize = 10_000;
const DNS: u16 = 53;
/// `198.18.0.0/15` and `fd67:6c6f:7665::/48`: what a sandbox's names lead to.
const NAMES_V4: u32 = 0xc612_0000;
const NAMES_V6: u128 = 0xfd67_6c6f_7665;
/// Interpreters try to leave these beside their libraries, and do not mind when they cannot.
const BYTECODE: &str = "__pycache__";

#[derive(Debug)]
pub(crate) struct Observer<'engine> {
    gathering: Arc<Gathering>,
    permissions: Permissions<'engine>,
    /// It has no network, and nothing but this sees that it wants one.
    offline: bool,
    /// Reads are asked about.
    reads: bool,
    told: HashSet<(Which, ByteString)>,
    /// Datagram sockets of a process that were tied to a name's address.
    tied: Vec<(u32, SocketAddr)>,
    /// Ports to which a process made connections.
    connected: HashSet<(u32, u16)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Which {
    Written,
    Read,
    Sent,
}

impl<'engine> Observer<'engine> {
    pub(crate) fn new(
        gathering: Arc<Gathering>,
        permissions: Permissions<'engine>,
        (offline, reads): (bool, bool),
    ) -> Self {
        Self {
            gathering,
            permissions,
            offline,
            reads,
            told: HashSet::new(),
            tied: Vec::new(),
            connected: HashSet::new(),
        }
    }

    pub(super) fn permissions(&self) -> &Permissions<'engine> {
        &self.permissions
    }

    pub(crate) fn noticed(&mut self, notice: Notice) {
        let Notice { pid, parent, what } = notice;
        match what {
            Noticed::Exec {
                program,
                argv,
                argv_truncated,
                cwd,
            } => {
                let refusal = self.permissions.of_command(&argv);
                self.gathering.add(Observed {
                    refusal,
                    simulated_result: None,
                    deed: Deed::ProcessSpawn(ProcessSpawn {
                        pid,
                        parent,
                        program,
                        argv,
                        argv_truncated,
                        cwd,
                    }),
                });
            }
            Noticed::Connect { address, datagram } => self.addressed(pid, address, datagram),
            Noticed::Write { call, path, second } => {
                // What a link leads to is not written by making the link.
                let second = second.filter(|_| call.starts_with("rename"));
                for path in std::iter::once(path).chain(second) {
                    self.written(call, &path);
                }
            }
            Noticed::Read { path } if self.reads => self.read(&path),
            // Opened to be written as well, which is what was asked about.
            Noticed::Read { .. } => {}
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) {
        for (pid, address) in std::mem::take(&mut self.tied) {
            if !self.connected.contains(&(pid, address.port())) {
                self.sent(address);
            }
        }
    }

    fn addressed(&mut self, pid: u32, address: SocketAddr, datagram: bool) {
        match datagram {
            _ if self.offline => self.refused(address, datagram),
            // A connection is seen where it ends, with its name.
            false if self.connected.len() < MOST_TOLD => {
                self.connected.insert((pid, address.port()));
            }
            true if address.port() == DNS => {}
            // Before it connects to a name, the C library ties a datagram socket to each of its
            // addresses, sends nothing, and sees which way it would go.
            true if is_of_a_name(address.ip()) && self.tied.len() < MOST_TOLD => {
                self.tied.push((pid, address));
            }
            true => self.sent(address),
            false => {}
        }
    }

    fn refused(&mut self, address: SocketAddr, datagram: bool) {
        let shown = ByteString::try_from(address.to_string().as_str()).unwrap_or_default();
        if !self.is_new(Which::Sent, &shown) {
            return;
        }
        let spoken = match datagram {
            true => Spoken::Udp,
            false => Spoken::Tcp,
        };
        self.gathering.add(Observed {
            refusal: Some(format!(
                "`{address}` was addressed, and the network is `none`"
            )),
            simulated_result: None,
            deed: Deed::NetworkRequest(NetworkRequest::bare(
                Approach::Direct,
                spoken,
                (address.ip().to_string(), address.port()),
                NetCode::NetModeNone,
            )),
        });
    }

    fn sent(&mut self, address: SocketAddr) {
        let shown = ByteString::try_from(address.to_string().as_str()).unwrap_or_default();
        if !self.is_new(Which::Sent, &shown) {
            return;
        }
        let why = format!("`{address}` was sent datagrams, which never leave a sandbox");
        self.gathering.add(Observed {
            refusal: Some(why),
            simulated_result: None,
            deed: Deed::NetworkRequest(NetworkRequest::bare(
                Approach::Direct,
                Spoken::Udp,
                (address.ip().to_string(), address.port()),
                NetCode::InvalidDestination,
            )),
        });
    }

    fn written(&mut self, call: &'static str, path: &ByteString) {
        let shown = path.display();
        let (path, refusal) = match place(&shown) {
            Place::Scratch => return,
            // No layer has the last word on what may not be written.
            Place::Workspace(rest) => (
                ByteString::try_from(rest.as_str()),
                self.permissions.not_writable(),
            ),
            Place::EgressRuntime if shown.split('/').any(|part| part == BYTECODE) => return,
            Place::EgressRuntime => {
                let shown = path.one_line();
                let why =
                    format!("`{shown}` is outside the workspace, and nothing there is written");
                (Ok(path.clone()), Some(why))
            }
        };
        let Ok(path) = path else { return };
        if !self.is_new(Which::Written, &path) {
            return;
        }
        let is_refused = refusal.is_some();
        let observed = Observed {
            refusal,
            simulated_result: None,
            deed: Deed::FilesystemWrite(FileWrite {
                operation: FileOp::Attempted,
                path,
                from: None,
                before: None,
                after: None,
                diff: None,
                call: Some(call.to_owned()),
            }),
        };
        match is_refused {
            true => {
                self.gathering.add(observed);
            }
            false => self.gathering.tell(observed),
        }
    }

    fn read(&mut self, path: &ByteString) {
        let shown = path.display();
        let (path, shown) = match place(&shown) {
            Place::Scratch => return,
            Place::Workspace(rest) => match ByteString::try_from(rest.as_str()) {
                Ok(path) => (path, rest),
                Err(_) => return,
            },
            Place::EgressRuntime => (path.clone(), shown),
        };
        if self.is_new(Which::Read, &path) {
            let refusal = self.permissions.of_read(shown);
            self.gathering.add(Observed {
                refusal,
                simulated_result: None,
                deed: Deed::FilesystemRead(FileRead { path }),
            });
        }
    }

    fn is_new(&mut self, which: Which, path: &ByteString) -> bool {
        if self.told.len() >= MOST_TOLD {
            // Whatever it was, it is not told.
            self.gathering.dropped(1);
            return false;
        }
        self.told.insert((which, path.clone()))
    }
}

fn is_of_a_name(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => u32::from(address) & 0xfffe_0000 == NAMES_V4,
        IpAddr::V6(address) => u128::from(address) >> 80 == NAMES_V6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_stand_for_names_are_known() {
        for (address, is_one) in [
            ("198.18.1.0", true),
            ("198.19.255.255", true),
            ("198.20.0.0", false),
            ("198.51.100.7", false),
            ("fd67:6c6f:7665::100", true),
            ("fd67:6c6f:7666::100", false),
            ("::ffff:198.18.1.0", true),
        ] {
            assert_eq!(is_of_a_name(address.parse().unwrap()), is_one, "{address}");
        }
    }
}
