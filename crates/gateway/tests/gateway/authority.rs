//! The authority that one sandbox trusts.

use std::sync::Arc;

use glovebox_gateway::Authority;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::servers::{Trusted, client};

/// A client that trusts what the sandbox is told to trust, and nothing else.
pub(crate) fn sandbox_client(authority: &Authority) -> Arc<ClientConfig> {
    let certificate = CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes());
    client(&certificate.unwrap())
}

#[test]
fn it_shows_its_certificate_and_never_its_key() {
    let trusted = Trusted::new();
    let (one, other) = (
        Authority::new(trusted.client()).unwrap(),
        Authority::new(trusted.client()).unwrap(),
    );
    assert!(
        one.certificate_pem()
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    assert!(!one.certificate_pem().contains("PRIVATE"));
    assert_ne!(one.certificate_pem(), other.certificate_pem());
    assert_eq!(format!("{one:?}"), "Authority");
}
