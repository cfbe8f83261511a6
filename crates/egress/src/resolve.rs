//! Names to addresses, asked of the host's own resolver and never of a sandbox's.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts};
use hickory_resolver::proto::rr::Name;

use crate::refusal::{Refusal, RefusalCode, shown};

pub trait Resolver: Send + Sync + fmt::Debug {
    /// All addresses of a fully qualified name, of both families. No search domain is added.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Refusal>>;
}

/// Of one server, for one question.
const PATIENCE: Duration = Duration::from_secs(3);
const ATTEMPTS: usize = 2;
/// A name that moved is noticed within this, whatever its owner wished.
const REMEMBERED_MOST: Duration = Duration::from_secs(60);

const FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];

/// `/etc/hosts` and the servers of `/etc/resolv.conf`, read when the first name is asked for and
/// again when one of the two has changed.
#[derive(Default)]
pub struct SystemResolver {
    current: Mutex<Option<(Version, TokioResolver)>>,
}

/// By which a file that was written or replaced is known.
type Version = [Option<(u64, i64, i64)>; 2];

fn version() -> Version {
    FILES.map(|path| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.ino(), file.mtime(), file.mtime_nsec()))
    })
}

impl SystemResolver {
    pub fn new() -> Self {
        Self::default()
    }

    fn resolver(&self) -> Result<TokioResolver, Refusal> {
        let version = version();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, resolver)) = &*current
            && *of == version
        {
            return Ok(resolver.clone());
        }
        let resolver = configured()?;
        *current = Some((version, resolver.clone()));
        Ok(resolver)
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemResolver")
    }
}

fn configured() -> Result<TokioResolver, Refusal> {
    let failed = |error: String| {
        Refusal::new(
            RefusalCode::DnsFailed,
            format!("this host has no resolver: {error}"),
        )
        .hint("name a server in `/etc/resolv.conf`")
    };
    let mut builder = TokioResolver::builder_tokio().map_err(|error| failed(error.to_string()))?;
    let options = builder.options_mut();
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Always;
    options.timeout = PATIENCE;
    options.attempts = ATTEMPTS;
    options.positive_max_ttl = Some(REMEMBERED_MOST);
    options.negative_max_ttl = Some(REMEMBERED_MOST);
    builder.build().map_err(|error| failed(error.to_string()))
}

/// Names that the operator lists, and for all others another resolver.
#[derive(Debug)]
pub struct ListedResolver<R> {
    pub listed: BTreeMap<String, IpAddr>,
    pub others: R,
}

impl<R: Resolver> Resolver for ListedResolver<R> {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Refusal>> {
        match self.listed.get(name) {
            Some(address) => Box::pin(std::future::ready(Ok(vec![*address]))),
            None => self.others.resolve(name),
        }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Refusal>> {
        Box::pin(async move {
            let failed = |error: String| {
                Refusal::new(
                    RefusalCode::DnsFailed,
                    format!("`{}` has no address: {error}", shown(name)),
                )
            };
            // With its root, so that nothing is appended to it.
            let mut question = Name::from_ascii(name).map_err(|error| failed(error.to_string()))?;
            question.set_fqdn(true);
            let resolver = self.resolver()?;
            let found = resolver.lookup_ip(question).await;
            let found = found.map_err(|error| failed(error.to_string()))?;
            Ok(found.iter().collect())
        })
    }
}
