//! The way to the network, for everything in this process that needs one: one vetting with the
//! operator's settings, one runtime. Neither is made before it is asked for, since keepers are
//! forked from a process without threads.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use glovebox_egress::client::{Client, ClientLimits, Trust};
use glovebox_egress::retrieve::Retriever;
use glovebox_egress::{ListedResolver, PrivateTargets, Refusal, SystemResolver, Vetter};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_policy::{Config, NetworkSettings};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::network::Network;

const WORKERS: usize = 2;
/// For what a library does on threads of its own, such as reading the host's table of names.
const BLOCKING: usize = 8;
/// More than all authorities of a host have.
const AUTHORITIES_MOST: u64 = 16 << 20;

#[derive(Debug)]
pub struct EgressRuntime {
    vetter: Arc<Vetter>,
    settings: NetworkSettings,
    /// Reading all authorities takes a moment, and not everybody needs them.
    client: OnceLock<Client>,
    pub(crate) retriever: OnceLock<Retriever>,
    handle: Handle,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl EgressRuntime {
    /// Starts threads: nothing may be forked after it.
    pub fn open(config: &Config) -> Result<Self> {
        let mut vetter = Vetter::system(private_targets(config)?);
        vetter.resolver = Arc::new(ListedResolver {
            listed: config.network().hosts.clone(),
            others: SystemResolver::new(),
        });
        let vetter = Arc::new(vetter);
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(BLOCKING)
            .thread_name("outside")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::new(Code::Busy, Stage::Open, "no thread is left").caused_by(error)
            })?;
        Ok(Self {
            vetter,
            settings: config.network().clone(),
            client: OnceLock::new(),
            retriever: OnceLock::new(),
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    pub fn vetter(&self) -> &Arc<Vetter> {
        &self.vetter
    }

    pub fn runtime(&self) -> &Handle {
        &self.handle
    }

    pub fn settings(&self) -> &NetworkSettings {
        &self.settings
    }

    /// Our own HTTP client, over the vetter.
    pub fn client(&self) -> Result<&Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let extra = self.settings.extra_ca.as_deref().map(authorities);
        let trust = Trust::system(extra.transpose()?.as_deref());
        let trust = trust.map_err(|refusal| misconfigured("extra_ca", refusal))?;
        let mut client = Client::new((*self.vetter).clone(), trust);
        client.limits = ClientLimits {
            connect: self.settings.retrieval.connect_timeout.duration(),
            ..ClientLimits::default()
        };
        Ok(self.client.get_or_init(|| client))
    }

    /// Whose certificates are believed: the host's authorities, and the operator's beside them.
    pub fn trust(&self) -> Result<&Trust> {
        self.client().map(|client| &client.trust)
    }
}

impl Drop for EgressRuntime {
    /// Whoever drops the engine may be a task of another runtime, which must not wait for this one.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Network {
    /// Opened when it is first needed, and never before keepers were forked.
    pub fn outside(&self) -> Result<&EgressRuntime> {
        if let Some(outside) = self.outside.get() {
            return Ok(outside);
        }
        let opened = EgressRuntime::open(self.instance.config())?;
        Ok(self.outside.get_or_init(|| opened))
    }
}

/// What the operator lists in `[network] private`.
pub(crate) fn private_targets(config: &Config) -> Result<PrivateTargets> {
    let listed = config.network().private.iter().map(ToString::to_string);
    PrivateTargets::parse(listed).map_err(|refusal| misconfigured("private", refusal))
}

fn authorities(path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path)?;
        file.take(AUTHORITIES_MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error: std::io::Error| {
        let message = format!("cannot read `{}` of `[network] extra_ca`", path.display());
        Error::new(Code::InvalidConfig, Stage::Open, message).caused_by(error)
    })
}

/// The configuration was checked when it was read; what is wrong here is said all the same.
fn misconfigured(key: &str, refusal: Refusal) -> Error {
    let error = Error::new(
        Code::InvalidConfig,
        Stage::Open,
        format!("`[network] {key}`: {}", refusal.message),
    );
    match refusal.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
