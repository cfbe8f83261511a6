//! A certificate authority that one sandbox trusts and nobody else: TLS to inspected hosts is
//! answered in their names with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_model::{Code, Error, Result, Stage};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ServerConfig};

/// The key is made here, is only in memory, and ends with the sandbox.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    /// One key for all names: the sandbox that they are shown to is the same.
    leaf: KeyPair,
    configs: Mutex<HashMap<String, Arc<ServerConfig>>>,
    upstream: Arc<ClientConfig>,
}

/// A rule with `*` can stand for any number of names.
const NAMES_MOST: usize = 1024;

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// `upstream` verifies the real hosts; it must offer `http/1.1` and nothing else.
    pub fn new(upstream: Arc<ClientConfig>) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "Glovebox sandbox");
        dated(&mut params);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let mut upstream = ClientConfig::clone(&upstream);
        upstream.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            leaf: KeyPair::generate().map_err(failed)?,
            configs: Mutex::default(),
            upstream: Arc::new(upstream),
        })
    }

    /// What the sandbox must trust.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn upstream(&self) -> &Arc<ClientConfig> {
        &self.upstream
    }

    /// How TLS is answered in the name of a host.
    pub(crate) fn server(&self, name: &str) -> Result<Arc<ServerConfig>> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(name) {
            return Ok(Arc::clone(config));
        }
        if configs.len() >= NAMES_MOST {
            configs.clear();
        }
        let config = Arc::new(self.config(name)?);
        configs.insert(name.to_owned(), Arc::clone(&config));
        Ok(config)
    }

    fn config(&self, name: &str) -> Result<ServerConfig> {
        let mut params = CertificateParams::new([name.to_owned()]).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        dated(&mut params);
        let leaf = params.signed_by(&self.leaf, &self.issuer).map_err(failed)?;
        let chain = vec![leaf.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.leaf.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(failed)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// From last year, for sandboxes whose clock is behind, to the end of the next.
fn dated(params: &mut CertificateParams) {
    let year = i32::from(jiff::Zoned::now().year());
    params.not_before = date_time_ymd(year - 1, 1, 1);
    params.not_after = date_time_ymd(year + 1, 12, 31);
}

fn failed(error: impl fmt::Display) -> Error {
    Error::new(
        Code::Internal,
        Stage::Admit,
        format!("no certificate for inspection: {error}"),
    )
}
