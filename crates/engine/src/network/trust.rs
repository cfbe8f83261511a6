//! Whom the programs of one sandbox trust: who the host trusts, and where TLS may be opened on the
//! way an authority that exists for this sandbox alone.

use std::path::Path;
use std::sync::Arc;

use glovebox_gateway::Authority;
use glovebox_model::{Code, Error, Result, Stage};

/// Where Linux distributions keep their bundle.
const HOSTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

#[derive(Debug)]
pub(crate) struct Trust {
    authority: Option<Arc<Authority>>,
    bundle: Vec<u8>,
}

impl Trust {
    /// `extra` is a file of the operator's.
    pub(super) fn new(authority: Option<Authority>, extra: Option<&Path>) -> Result<Self> {
        let mut bundle = Vec::new();
        if let Some(authority) = &authority {
            add(&mut bundle, authority.certificate_pem().as_bytes());
        }
        if let Some(path) = extra {
            let extra = std::fs::read(path).map_err(|error| {
                let message = format!("`[network] extra_ca`: `{}` cannot be read", path.display());
                Error::new(Code::InvalidConfig, Stage::Admit, message).caused_by(error)
            })?;
            add(&mut bundle, &extra);
        }
        // A host without one trusts nobody, and so do its sandboxes.
        if let Some(hosts) = HOSTS.iter().find_map(|path| std::fs::read(path).ok()) {
            add(&mut bundle, &hosts);
        }
        Ok(Self {
            authority: authority.map(Arc::new),
            bundle,
        })
    }

    pub(super) fn authority(&self) -> Option<Arc<Authority>> {
        self.authority.clone()
    }

    /// In PEM.
    pub(crate) fn bundle(&self) -> &[u8] {
        &self.bundle
    }
}

fn add(bundle: &mut Vec<u8>, more: &[u8]) {
    if bundle.last().is_some_and(|byte| *byte != b'\n') {
        bundle.push(b'\n');
    }
    bundle.extend_from_slice(more);
}
