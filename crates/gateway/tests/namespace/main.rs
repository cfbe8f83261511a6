//! The doors in a network namespace of their own, as a sandbox has them: what is dialled there is
//! known by the kernel, and the gateway serves it from outside. Needs root and `ip`.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test speaks to what it started"
)]

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../gateway/ground.rs"]
mod ground;
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../gateway/servers.rs"]
mod servers;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;

use glovebox_egress::{PrivateTargets, Vetter};
use glovebox_gateway::{Gateway, GatewaySockets, RESOLVER};
use glovebox_model::NetCode;
use ground::{Heard, PATIENCE, World, get, policy, question, read_answer};
use hickory_proto::rr::RecordType;
use nix::sched::{CloneFlags, unshare};
use tokio::runtime::Handle;

fn ip(arguments: &str) {
    let done = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .unwrap();
    assert!(done.success(), "ip {arguments}");
}

/// This thread, and what it starts, have a network of their own: loopback, to which every address
/// leads. It goes with the thread and the sockets.
fn enter_network() {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    ip("link set lo up");
    ip("route add local default dev lo");
    ip("-6 route add local default dev lo");
}

fn doors() -> GatewaySockets {
    GatewaySockets {
        // Both families: IPv4 comes in as mapped addresses.
        transparent: vec![TcpListener::bind("[::]:80").unwrap().into()],
        proxy: Vec::new(),
        dns: vec![UdpSocket::bind((RESOLVER, 53)).unwrap().into()],
    }
}

fn lookup(name: &str, kind: RecordType) -> IpAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect((RESOLVER, 53)).unwrap();
    socket.send(&question(name, kind)).unwrap();
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer).unwrap();
    read_answer(&answer[..length]).1.unwrap()
}

fn ask(address: IpAddr, host: &str) -> String {
    let mut stream = TcpStream::connect(SocketAddr::new(address, 80)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(get(host, "/x").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What a program in there gets from the name, from its address of the other family, from a name
/// that is not allowed, and from an address.
fn program() -> [String; 4] {
    let (v4, v6) = (RecordType::A, RecordType::AAAA);
    [
        ask(lookup("a.test.", v4), "a.test"),
        ask(lookup("a.test.", v6), "a.test"),
        ask(lookup("c.test.", v4), "c.test"),
        ask("93.184.216.1".parse().unwrap(), "a.test"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_of_another_network_are_served_from_outside() {
    let (give, take) = mpsc::channel();
    let (open, opened) = mpsc::channel::<()>();
    let inside = thread::spawn(move || {
        enter_network();
        give.send(doors()).unwrap();
        opened.recv().unwrap();
        program()
    });
    let doors = tokio::task::spawn_blocking(move || take.recv())
        .await
        .unwrap()
        .unwrap();
    let world = Arc::new(World::default());
    world.host("a.test", 80, servers::http().await);
    let heard = Arc::new(Heard::default());
    let vetter = Vetter {
        resolver: Arc::clone(&world) as _,
        dialler: Arc::clone(&world) as _,
        private: PrivateTargets::none(),
    };
    let gateway = Gateway::open(
        doors,
        Arc::new(vetter),
        None,
        Arc::clone(&heard) as _,
        &Handle::current(),
    )
    .unwrap();
    gateway.admit(policy(&["a.test:80"]));
    open.send(()).unwrap();
    let answers = tokio::task::spawn_blocking(|| inside.join())
        .await
        .unwrap()
        .unwrap();
    for allowed in &answers[..2] {
        assert!(allowed.contains("GET /x\n"), "{allowed}");
    }
    assert!(
        answers[2].contains("x-glovebox-code: NOT_IN_ALLOWLIST"),
        "{}",
        answers[2]
    );
    assert!(
        answers[3].contains("x-glovebox-code: INVALID_DESTINATION"),
        "{}",
        answers[3]
    );
    let refused = gateway.traffic().refused;
    let codes: Vec<_> = refused
        .iter()
        .map(|it| (it.host.as_str(), it.code))
        .collect();
    let expected = [
        ("c.test", NetCode::NotInAllowlist),
        ("93.184.216.1", NetCode::InvalidDestination),
    ];
    assert_eq!(codes, expected);
    assert_eq!(world.dials.lock().unwrap().len(), 2);
}
