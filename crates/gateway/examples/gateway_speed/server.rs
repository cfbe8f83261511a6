//! A server that blocks, one thread a connection, with an answer that is ready.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::BODY;

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn http() -> SocketAddr {
    listen(answer)
}

pub(crate) fn https(names: &[&str]) -> (SocketAddr, CertificateDer<'static>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().der().clone();
    let issuer = Issuer::new(params, key);
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &issuer)
        .unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let address = listen(move |stream| {
        let session = ServerConnection::new(Arc::clone(&config)).unwrap();
        answer(StreamOwned::new(session, stream));
    });
    (address, authority)
}

fn listen(serve: impl Fn(std::net::TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, serve) = (stream.unwrap(), serve.clone());
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

fn answer(mut stream: impl Read + Write) {
    let ready = |length: usize| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        [head.into_bytes(), vec![b'x'; length]].concat()
    };
    let (body, short) = (ready(BODY), ready(5));
    let mut buffer = [0; 4096];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) | Err(_) => return,
            Ok(read) => filled += read,
        }
        if !buffer[..filled].ends_with(b"\r\n\r\n") {
            continue;
        }
        let answer = match buffer[..filled].windows(10).any(|it| it == b"GET /body ") {
            true => &body,
            false => &short,
        };
        if stream
            .write_all(answer)
            .and_then(|()| stream.flush())
            .is_err()
        {
            return;
        }
        filled = 0;
    }
}
