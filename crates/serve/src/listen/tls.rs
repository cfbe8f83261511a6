//! TLS by certificate files.

use std::path::Path;
use std::sync::Arc;

use glovebox_model::{Code, Error, Result, Stage};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::options::TlsFiles;

/// TLS 1.2 and 1.3, with the safe suites of the library alone.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor> {
    let certificates = CertificateDer::pem_file_iter(&files.certificates)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| unusable(&files.certificates, "holds no certificates", error))?;
    if certificates.is_empty() {
        return Err(unusable(
            &files.certificates,
            "holds no certificates",
            "it has no `BEGIN CERTIFICATE`",
        ));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unusable(&files.key, "holds no private key", error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.key, "cannot be used", error))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| unusable(&files.key, "does not fit the certificate", error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unusable(file: &Path, why: &str, cause: impl std::fmt::Display) -> Error {
    let message = format!("the TLS file `{}` {why}", file.display());
    Error::new(Code::InvalidConfig, Stage::Parse, message)
        .caused_by(cause)
        .hint("give PEM files: the certificates with the server's own first, and its key")
}
