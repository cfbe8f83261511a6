//! Whose certificates are believed.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::refusal::{Refusal, RefusalCode};

#[derive(Clone)]
pub struct Trust {
    config: Arc<ClientConfig>,
    authorities: usize,
}

impl Trust {
    /// The authorities of this host, and those of `extra`, certificates in PEM form, beside them.
    /// Without any, every handshake fails.
    pub fn system(extra: Option<&[u8]>) -> Result<Self, Refusal> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(extra) = extra {
            add(&mut roots, extra)?;
        }
        Self::of(roots)
    }

    /// The authorities of `pem` alone.
    pub fn only(pem: &[u8]) -> Result<Self, Refusal> {
        let mut roots = RootCertStore::empty();
        add(&mut roots, pem)?;
        Self::of(roots)
    }

    fn of(roots: RootCertStore) -> Result<Self, Refusal> {
        let authorities = roots.len();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error.to_string()))?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A resumed session would carry one connection's judgement over to another.
        config.resumption = Resumption::disabled();
        Ok(Self {
            config: Arc::new(config),
            authorities,
        })
    }

    /// What handshakes with the real hosts are made with.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }
}

fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), Refusal> {
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| failed(&error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| failed(&error.to_string()))?;
        found = true;
    }
    match found {
        true => Ok(()),
        false => Err(failed("there is no `BEGIN CERTIFICATE` in it")),
    }
}

fn failed(why: &str) -> Refusal {
    Refusal::new(
        RefusalCode::TlsError,
        format!("the authorities cannot be used: {why}"),
    )
    .hint("`[network] extra_ca` names a file of certificates in PEM form")
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trust({} authorities)", self.authorities)
    }
}
