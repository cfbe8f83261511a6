//! A gateway between clients and servers that are all on loopback.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use glovebox_egress::{Connection, Dialler, PrivateTargets, Refusal, Resolver, Vetter};
use glovebox_gateway::{Authority, Dialled, Gateway, GatewaySockets, Inspect, Log, Policy};
use glovebox_model::{Attempt, NetworkMode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::client::Client;
use crate::{Way, server};

/// All names are one address outside; the port says which server.
#[derive(Debug)]
struct EgressRuntime(HashMap<u16, SocketAddr>);

const PUBLIC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(93, 184, 216, 34));

impl Resolver for EgressRuntime {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Refusal>> {
        Box::pin(async { Ok(vec![PUBLIC]) })
    }
}

impl Dialler for EgressRuntime {
    fn dial<'a>(&'a self, address: SocketAddr) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let server = self
                .0
                .get(&address.port())
                .ok_or(io::ErrorKind::ConnectionRefused)?;
            let stream = TcpStream::connect(server).await?;
            stream.set_nodelay(true)?;
            Ok(Connection::tcp_towards(stream, address))
        })
    }
}

/// Each door stands for one destination.
#[derive(Debug)]
struct ByDoor(HashMap<SocketAddr, SocketAddr>);

impl Dialled for ByDoor {
    fn destination(&self, stream: &TcpStream) -> io::Result<SocketAddr> {
        let door = stream.local_addr()?;
        Ok(self.0.get(&door).copied().unwrap_or(door))
    }
}

#[derive(Debug)]
struct Silent;

impl Log for Silent {
    fn attempt(&self, _: &Attempt) {}
}

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    pub(crate) proxy: SocketAddr,
    doors: HashMap<(&'static str, u16), SocketAddr>,
    real: CertificateDer<'static>,
    sandbox: CertificateDer<'static>,
    /// Kept alive for as long as anybody measures.
    _gateway: Arc<(Gateway, Runtime)>,
}

impl World {
    pub(crate) fn start() -> Self {
        let http = server::http();
        let (https, real) = server::https(&["b.test", "c.test"]);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let upstream = rustls::ClientConfig::builder_with_provider(server::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates({
                let mut roots = rustls::RootCertStore::empty();
                roots.add(real.clone()).unwrap();
                roots
            })
            .with_no_client_auth();
        let authority = Arc::new(Authority::new(Arc::new(upstream)).unwrap());
        let sandbox =
            CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes()).unwrap();
        let tcp = || TcpListener::bind("127.0.0.1:0").unwrap();
        let destinations = [
            ("a.test", 80),
            ("a.test", 7000),
            ("b.test", 443),
            ("c.test", 443),
        ];
        let listeners: Vec<_> = destinations.iter().map(|_| tcp()).collect();
        let proxy = tcp();
        let proxy_address = proxy.local_addr().unwrap();
        let dns = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let dns_address = dns.local_addr().unwrap();
        // Names get their addresses in the order in which they are asked for.
        let number = |name: &str| match name {
            "a.test" => 0,
            "b.test" => 1,
            _ => 2,
        };
        let mut doors = HashMap::new();
        let mut dialled = HashMap::new();
        for (listener, (name, port)) in listeners.iter().zip(destinations) {
            let door = listener.local_addr().unwrap();
            doors.insert((name, port), door);
            let synthetic = SocketAddr::new(IpAddr::from([198, 18, 1, number(name)]), port);
            dialled.insert(door, synthetic);
        }
        let outside = Arc::new(EgressRuntime(
            [(80, http), (7000, http), (443, https)].into(),
        ));
        let vetter = Vetter {
            resolver: Arc::clone(&outside) as _,
            dialler: outside,
            private: PrivateTargets::none(),
        };
        let gateway = Gateway::open_with(
            GatewaySockets {
                transparent: listeners.into_iter().map(Into::into).collect(),
                proxy: vec![proxy.into()],
                dns: vec![dns.into()],
            },
            Arc::new(vetter),
            Some(authority),
            Arc::new(Silent),
            runtime.handle(),
            Arc::new(ByDoor(dialled)),
        )
        .unwrap();
        gateway.admit(Policy {
            mode: NetworkMode::Unrestricted,
            allow: std::collections::BTreeSet::new(),
            bytes: u64::MAX,
            connections: u64::MAX,
            closes: Instant::now() + Duration::from_secs(3600),
            inspect: vec![Inspect {
                host: "c.test:443".parse().unwrap(),
                methods: None,
                paths: None,
            }],
            secrets: Vec::new(),
            simulate: None,
            previewed: None,
        });
        for name in ["a.test", "b.test", "c.test"] {
            ask(dns_address, name);
        }
        Self {
            http,
            https,
            proxy: proxy_address,
            doors,
            real,
            sandbox,
            _gateway: Arc::new((gateway, runtime)),
        }
    }

    pub(crate) fn way(&self, name: &'static str, open: impl Fn(&Self) -> Client + 'static) -> Way {
        let world = self.clone();
        Way {
            name,
            open: Box::new(move || open(&world)),
        }
    }

    pub(crate) fn dial(&self, port: u16) -> SocketAddr {
        self.doors[&("a.test", port)]
    }

    pub(crate) fn dial_secure(&self, name: &'static str) -> SocketAddr {
        self.doors[&(name, 443)]
    }

    pub(crate) fn host_of(&self, door: SocketAddr) -> String {
        let found = self.doors.iter().find(|(_, it)| **it == door);
        let ((name, port), _) = found.unwrap();
        match port {
            80 => (*name).to_owned(),
            _ => format!("{name}:{port}"),
        }
    }

    pub(crate) fn real_authority(&self) -> CertificateDer<'static> {
        self.real.clone()
    }

    pub(crate) fn sandbox_authority(&self) -> CertificateDer<'static> {
        self.sandbox.clone()
    }
}

/// The shortest question that gives a name an address.
fn ask(dns: SocketAddr, name: &str) {
    let mut question = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(&[0, 0, 1, 0, 1]);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(crate::PATIENCE)).unwrap();
    socket.send_to(&question, dns).unwrap();
    assert_ne!(socket.recv(&mut [0; 512]).unwrap(), 0);
}

/// Ends when it is dropped.
pub(crate) struct Tinyproxy {
    child: Child,
    directory: std::path::PathBuf,
    pub(crate) address: SocketAddr,
}

impl Tinyproxy {
    /// None where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let directory = std::env::temp_dir().join(format!("gateway-speed-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let file = directory.join("tinyproxy.conf");
        let config = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 100\nAllow 127.0.0.1\nLogLevel Critical\n"
        );
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new("tinyproxy");
        command
            .arg("-d")
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            std::fs::remove_dir_all(&directory).unwrap();
            println!("tinyproxy is not installed");
            return None;
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let proxy = Self {
            child,
            directory,
            address,
        };
        let deadline = Instant::now() + crate::PATIENCE;
        while std::net::TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "tinyproxy does not answer");
            std::thread::yield_now();
        }
        Some(proxy)
    }
}

impl Drop for Tinyproxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
