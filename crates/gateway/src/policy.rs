//! What a sandbox may reach for the time of one exec.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Instant;

use glovebox_model::{HostPort, NetworkMode, SecretName};
use zeroize::Zeroizing;

use crate::path::PathPattern;
use crate::previewed::Previewed;
use crate::simulate::Simulated;

#[derive(Debug, Clone)]
pub struct Policy {
    pub mode: NetworkMode,
    pub allow: BTreeSet<HostPort>,
    /// Both directions together.
    pub bytes: u64,
    pub connections: u64,
    /// Everything is cut then.
    pub closes: Instant,
    pub inspect: Vec<Inspect>,
    pub secrets: Vec<Brokered>,
    /// Nothing leaves: everything is answered from here, and told as what it would have been.
    /// What is allowed, and for how long, is only recorded. Of secrets the values are forgotten.
    pub simulate: Option<Simulated>,
    /// Beside all else: what leaves must be in here. Means nothing in a simulation.
    pub previewed: Option<Previewed>,
}

/// A host whose TLS is opened on the way. It must be allowed as well: this only narrows. Of
/// several rules for a host any one lets a request through.
#[derive(Debug, Clone)]
pub struct Inspect {
    pub host: HostPort,
    /// None: any.
    pub methods: Option<BTreeSet<String>>,
    /// None: any.
    pub paths: Option<Vec<PathPattern>>,
}

/// A secret of which the sandbox holds a placeholder. Requests to one of its hosts, over TLS that
/// is opened here, get the value in the place of the placeholder in the values of their headers,
/// and inside `Basic` credentials. Not in URLs, which end up in logs, and not in bodies.
/// While one is held, all hosts are inspected: what any of them answers is searched for the value, and
/// what cannot be searched is refused.
#[derive(Clone)]
pub struct Brokered {
    pub name: SecretName,
    pub placeholder: String,
    pub value: Zeroizing<Vec<u8>>,
    pub hosts: BTreeSet<HostPort>,
}

impl fmt::Debug for Brokered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brokered")
            .field("name", &self.name)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}
