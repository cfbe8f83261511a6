//! Certificates that hold and certificates that do not.

use std::sync::{Arc, Mutex, OnceLock};

use glovebox_egress::RefusalCode;
use glovebox_egress::client::Trust;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, GeneralSubtree, IsCa, Issuer, KeyPair,
    NameConstraints, date_time_ymd,
};
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::world::{PUBLIC, PUBLIC_6, Road, Server, World, head, ok};

pub(crate) struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(constraints: Option<NameConstraints>) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.name_constraints = constraints;
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }
}

/// The one that every world trusts.
pub(crate) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| Authority::new(None))
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

fn config(params: &CertificateParams, signer: Option<&Authority>) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let certificate = match signer {
        Some(signer) => params.signed_by(&key, &signer.issuer).unwrap(),
        None => params.self_signed(&key).unwrap(),
    };
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap()
}

#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) heads: Mutex<Vec<String>>,
    pub(crate) names: Mutex<Vec<Option<String>>>,
}

/// A server with a certificate; what it heard beside it.
pub(crate) async fn server(
    params: &CertificateParams,
    signer: Option<&Authority>,
    answer: String,
) -> (Server, Arc<Heard>) {
    let acceptor = TlsAcceptor::from(Arc::new(config(params, signer)));
    let heard = Arc::new(Heard::default());
    let noted = Arc::clone(&heard);
    // The loop of the plain server would take the handshake for a request.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, noted, answer) = (acceptor.clone(), noted.clone(), answer.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let name = stream.get_ref().1.server_name().map(str::to_owned);
                noted.names.lock().unwrap().push(name);
                let head = head(&mut stream).await;
                noted.heads.lock().unwrap().push(head);
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (Server::of(address, task), heard)
}

pub(crate) async fn named(name: &str, answer: String) -> (Server, Arc<Heard>) {
    server(&params(name), Some(authority()), answer).await
}

/// What a world that has `ok.test` behind this certificate makes of it.
async fn judged(
    params: &CertificateParams,
    signer: Option<&Authority>,
    url: &str,
) -> (Option<RefusalCode>, Arc<Heard>) {
    let (server, heard) = server(params, signer, ok("text/plain", "hello")).await;
    let world = World::empty();
    world.names.set("ok.test", &[&[PUBLIC]]);
    world.roads.set(PUBLIC, 443, Road::To(server.address));
    // A fall-back to plain HTTP would be answered.
    let plain = Server::saying(ok("text/plain", "plain")).await;
    world.roads.set(PUBLIC, 80, Road::To(plain.address));
    let code = world.code(url).await;
    assert!(plain.seen().is_empty(), "fell back to plain HTTP");
    (code, heard)
}

const URL: &str = "https://ok.test/";
const BAD: Option<RefusalCode> = Some(RefusalCode::TlsError);

/// S142
pub(crate) async fn certificates_that_do_not_hold() {
    let (code, heard) = judged(&params("ok.test"), Some(authority()), URL).await;
    assert_eq!(code, None, "the control");
    assert_eq!(*heard.names.lock().unwrap(), [Some("ok.test".to_owned())]);

    let (code, heard) = judged(&params("ok.test"), None, URL).await;
    assert_eq!(code, BAD, "self-signed");
    assert!(heard.heads.lock().unwrap().is_empty());

    let mut expired = params("ok.test");
    expired.not_before = date_time_ymd(2020, 1, 1);
    expired.not_after = date_time_ymd(2021, 1, 1);
    assert_eq!(
        judged(&expired, Some(authority()), URL).await.0,
        BAD,
        "expired"
    );

    let mut early = params("ok.test");
    early.not_before = date_time_ymd(2090, 1, 1);
    early.not_after = date_time_ymd(2091, 1, 1);
    assert_eq!(
        judged(&early, Some(authority()), URL).await.0,
        BAD,
        "not yet"
    );

    let other = params("other.test");
    assert_eq!(
        judged(&other, Some(authority()), URL).await.0,
        BAD,
        "wrong host"
    );

    let wild = params("*.ok.test");
    assert_eq!(
        judged(&wild, Some(authority()), URL).await.0,
        BAD,
        "not below"
    );

    let constrained = Authority::new(Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("elsewhere.test".to_owned())],
        excluded_subtrees: Vec::new(),
    }));
    let (server, _) = server(
        &params("ok.test"),
        Some(&constrained),
        ok("text/plain", "hello"),
    )
    .await;
    let mut world = World::empty();
    world.retriever.client.trust = Trust::only(constrained.pem().as_bytes()).unwrap();
    world.names.set("ok.test", &[&[PUBLIC]]);
    world.roads.set(PUBLIC, 443, Road::To(server.address));
    assert_eq!(world.code(URL).await, BAD, "an authority for other names");
}

/// S143
pub(crate) async fn certificates_of_addresses() {
    let by_address = params(PUBLIC);
    let (code, _) = judged(&by_address, Some(authority()), URL).await;
    assert_eq!(code, BAD, "the address's certificate for a name");

    let literal = format!("https://{PUBLIC}/");
    let (code, heard) = judged(&by_address, Some(authority()), &literal).await;
    assert_eq!(code, None, "the address's certificate for the address");
    assert_eq!(*heard.names.lock().unwrap(), [None], "an address is no SNI");

    let (code, _) = judged(&params("ok.test"), Some(authority()), &literal).await;
    assert_eq!(code, BAD, "a name's certificate for the address");
}

/// S150
pub(crate) async fn public_hosts_are_read() {
    for (name, url, address) in [
        ("example.com", "https://example.com/", PUBLIC),
        ("six.example.com", "https://six.example.com/", PUBLIC_6),
        (
            "xn--bcher-kva.example.com",
            "https://B\u{fc}cher.example.com/",
            PUBLIC,
        ),
    ] {
        let (server, heard) = named(name, ok("text/plain", "hello")).await;
        let world = World::empty();
        world.names.set(name, &[&[address]]);
        world.roads.set(address, 443, Road::To(server.address));
        let retrieved = world.get(url).await;
        assert_eq!(retrieved.error, None, "{url}");
        assert_eq!(retrieved.text.as_deref(), Some("hello"));
        assert_eq!(retrieved.status_code, Some(200));
        assert_eq!(
            retrieved.peer.map(|it| it.ip()),
            Some(crate::world::ip(address))
        );
        assert_eq!(retrieved.certificate_sha256.map(|it| it.len()), Some(64));
        let sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(retrieved.content_sha256.as_deref(), Some(sum));
        let host = format!("host: {name}\r\n");
        let heads = heard.heads.lock().unwrap();
        assert!(heads[0].to_ascii_lowercase().contains(&host), "{heads:?}");
    }
}

#[tokio::test]
async fn certificates_are_checked() {
    certificates_that_do_not_hold().await;
    certificates_of_addresses().await;
}

#[test]
fn what_is_no_certificate_is_no_authority() {
    for pem in [
        "",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        assert_eq!(
            Trust::only(pem.as_bytes()).unwrap_err().code,
            RefusalCode::TlsError
        );
    }
    let system = Trust::system(Some(authority().pem().as_bytes())).unwrap();
    assert!(!format!("{system:?}").contains("(0 "));
}
