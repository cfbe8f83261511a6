//! How a database elsewhere is spoken to: with TLS, and only when its certificate and name hold.

use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};
use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::{load_certs_from_paths, load_native_certs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Trusts the certificates of this file alone, or else those of the system.
pub(super) fn connector(root: Option<&str>) -> Result<MakeRustlsConnect> {
    let found = match root {
        Some(file) => load_certs_from_paths(Some(Path::new(file)), None),
        None => load_native_certs(),
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let of = root.map_or("the system".to_owned(), |file| format!("`{file}`"));
        let mut error = unusable(format!("{of} has no certificate to trust"))
            .hint("name a file of trusted certificates with `sslrootcert=` in the database's URL");
        if let Some(cause) = found.errors.first() {
            error = error.caused_by(cause);
        }
        return Err(error);
    }
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable("TLS cannot be used".to_owned()).caused_by(error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn unusable(message: String) -> Error {
    Error::new(Code::InvalidConfig, Stage::Open, message)
}
